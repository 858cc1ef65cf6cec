"""What dispatch is taken to cost in a trace without views, by the public traces that have both views and calls of others."""

from __future__ import annotations

import numpy as np
import pytest

from overhead_lens.readers.recording import read_recording
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.host_budget import _VIEWS_OF_CALL, call_ns, view_ns
from tests.public_traces import ABSENT, FOLDER


def test_operators_that_only_call_others_take_as_long_as_two_views() -> None:
    multiples = []
    for path in sorted(FOLDER.glob("*.json.gz")):
        analyzer = Analyzer(read_recording(path), default_classifier())
        timelines = [each.timeline for each in analyzer.threads.values()]
        view, call = view_ns(timelines), call_ns(timelines)
        if view and call:
            multiples.append(call / view)
    if not multiples:
        pytest.skip(ABSENT)
    assert len(multiples) == 20
    assert float(np.median(multiples)) == _VIEWS_OF_CALL
    assert (round(min(multiples), 1), round(max(multiples), 1)) == (0.8, 5.7)
