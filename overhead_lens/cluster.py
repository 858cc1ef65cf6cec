"""Many traces: one after another here, or spread over a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from overhead_lens.analysis.trace_analysis import analyze_trace
from overhead_lens.analysis.trace_model import TraceAnalysis, TraceFailure
from overhead_lens.categories import default_classifier
from overhead_lens.errors import OverheadLensError
from overhead_lens.trace.kineto import read_trace


def analyze_file(path: Path, rules: Path | None = None) -> TraceAnalysis | TraceFailure:
    """The analysis of one file; a file that cannot be read is a failure with its reason, never an exception."""
    try:
        return analyze_trace(read_trace(path), default_classifier(rules))
    except OverheadLensError as error:
        return TraceFailure(str(path), str(error))


def analyze_here(paths: Sequence[Path], rules: Path | None = None) -> Iterator[TraceAnalysis | TraceFailure]:
    """The analyses one after another, in this process."""
    for path in paths:
        yield analyze_file(path, rules)
