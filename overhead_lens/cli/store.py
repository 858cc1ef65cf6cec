"""From a capture directory to its budget and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from overhead_lens.analysis.breakdown import Budget, Evidence, make_budget
from overhead_lens.analysis.model import Breakdown
from overhead_lens.analysis.trace_budget import category_lane
from overhead_lens.capture.directory import read_capture
from overhead_lens.capture.files import PERFETTO
from overhead_lens.capture.loop import LOOP_NAME
from overhead_lens.categories import Classifier
from overhead_lens.stack import Stack
from overhead_lens.trace.callgrind import read_callgrind
from overhead_lens.trace.cut_stacks import mended
from overhead_lens.trace.kineto import read_events
from overhead_lens.trace.stacks import by_root, inside, parse_stacks


def budget_of(path: Path, classifier: Classifier) -> Budget:
    """Analyze a stored capture.

    Raises:
        UsageError: It is not a complete capture.
        MeasurementError: It holds no evidence of how its time divides.
    """
    (budget,) = budgets_of([path], classifier)
    return budget


def budgets_of(paths: Sequence[Path], classifier: Classifier) -> tuple[Budget, ...]:
    """Analyze stored captures that are compared: what the stacks of all of them say of a function holds for each.

    Raises:
        UsageError: One is not a complete capture.
        MeasurementError: One holds no evidence of how its time divides.
    """
    found = [_evidence(path) for path in paths]
    fitted = classifier.fitted(stack for evidence in found for stack in evidence.stacks)
    return tuple(make_budget(evidence, fitted) for evidence in found)


def _evidence(path: Path) -> Evidence:
    capture = read_capture(path)
    events = None if capture.kineto is None or capture.meta["trace"].get("reason") else read_events(capture.kineto)
    return Evidence(
        meta=capture.meta,
        clock=capture.clock,
        samples=stacks_per_process(capture.folded),
        events=events,
        name=str(path),
        calibration=capture.calibration,
        ablation=capture.ablation,
        instructions=None if capture.callgrind is None else read_callgrind(capture.callgrind),
    )


def stacks_per_process(folded: tuple[str, ...]) -> list[list[Stack]]:
    """The sampled stacks of the measured loop, one list per process; none of a process that gave none."""
    return mended([found for group in by_root(parse_stacks(folded)) if (found := inside(group, LOOP_NAME))])


def measured_stacks(folded: tuple[str, ...]) -> list[Stack]:
    """The sampled stacks of the measured loop, of all processes."""
    return [stack for stacks in stacks_per_process(folded) for stack in stacks]


def draw(path: Path, breakdown: Breakdown, classifier: Classifier) -> Path:
    """Write ``trace.pftrace`` into the capture."""
    return write_picture(path, path / PERFETTO, breakdown, classifier)


def write_picture(path: Path, target: Path, breakdown: Breakdown, classifier: Classifier) -> Path:
    """Write a capture as a native Perfetto trace to ``target``."""
    from overhead_lens.export.evidence import Evidence as Drawn
    from overhead_lens.export.perfetto import write_perfetto

    capture = read_capture(path)
    events = categories = None
    source = capture.kineto_stack or capture.kineto
    if source is not None:
        events = read_events(source)
        lane, _ = category_lane(events, classifier)
        thread = events.loc[events["name"] == LOOP_NAME, ["pid", "tid"]].head(1)
        categories = lane.assign(pid=thread["pid"].iloc[0], tid=thread["tid"].iloc[0]) if len(thread) else None
    stacks = measured_stacks(capture.folded)
    drawn = Drawn(
        events,
        categories,
        capture.clock,
        stacks,
        sample_period_ns=_sample_period_ns(events, stacks),
        process_name=f"worker of {breakdown.scenario}",
    )
    write_perfetto(target, breakdown, drawn)
    return target


def _sample_period_ns(events: pd.DataFrame | None, stacks: list[Stack]) -> int:
    """Spreads the stacks over the traced window; the sampler keeps counts, so their places mean nothing anyway."""
    count = sum(stack.count for stack in stacks)
    if events is None or not len(events) or not count:
        return 1_000_000
    window_ns = int((events["start_ns"] + events["dur_ns"]).max())
    return max(1, window_ns // count)
