"""A stored capture as a picture for the Perfetto UI: its budget, events, categories, block timings and stacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from overhead_lens.budget.model import Breakdown
from overhead_lens.budget.trace import category_lane
from overhead_lens.captures.directory import read_capture
from overhead_lens.captures.files import KINETO, KINETO_STACK, PERFETTO
from overhead_lens.export.lanes.drawn import Drawn
from overhead_lens.export.perfetto.trace import write_perfetto
from overhead_lens.instruments.clock.evidence import read_blocks
from overhead_lens.instruments.samples.evidence import read_samples
from overhead_lens.readers.kineto.read import read_events
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.worker.loop import LOOP_NAME


def draw(path: Path, breakdown: Breakdown, classifier: Classifier) -> Path:
    """Write ``trace.pftrace`` into the capture."""
    return write_picture(path, path / PERFETTO, breakdown, classifier)


def write_picture(path: Path, target: Path, breakdown: Breakdown, classifier: Classifier) -> Path:
    """Write a capture as a native Perfetto trace to ``target``."""
    capture = read_capture(path)
    events = categories = None
    source = capture.existing(KINETO_STACK) or capture.existing(KINETO)
    if source is not None:
        events = read_events(source)
        lane = category_lane(events, classifier)
        thread = events.loc[events["name"] == LOOP_NAME, ["pid", "tid"]].head(1)
        categories = lane.assign(pid=thread["pid"].iloc[0], tid=thread["tid"].iloc[0]) if len(thread) else None
    stacks = read_samples(capture).stacks
    drawn = Drawn(
        events,
        categories,
        read_blocks(capture),
        stacks,
        sample_period_ns=_sample_period_ns(events, stacks),
        process_name=f"worker of {breakdown.subject.name}",
    )
    write_perfetto(target, breakdown, drawn)
    return target


def _sample_period_ns(events: pd.DataFrame | None, stacks: Sequence[Stack]) -> int:
    """Spreads the stacks over the traced window; the sampler keeps counts, so their places mean nothing anyway."""
    count = sum(stack.count for stack in stacks)
    if events is None or not len(events) or not count:
        return 1_000_000
    window_ns = int((events["start_ns"] + events["dur_ns"]).max())
    return max(1, window_ns // count)
