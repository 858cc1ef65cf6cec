"""Pictures of one measured call, from what its capture holds: the sampled stacks, and the timed blocks of every process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from overhead_lens.budget.model import Breakdown
from overhead_lens.captures.directory import Capture, read_capture
from overhead_lens.errors import UsageError
from overhead_lens.instruments.clock.evidence import read_blocks
from overhead_lens.instruments.samples.evidence import read_samples
from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.axes import rounded, time_unit
from overhead_lens.report.page.charts.icicle import icicle
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.report.page.model import Chart
from overhead_lens.report.text.blocks import call_title
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns

_CHART_PX = 300


def stacks_of(breakdown: Breakdown) -> tuple[Sequence[Stack], str]:
    """The stacks that were sampled in the call, or why there are none."""
    try:
        samples = read_samples(_capture(breakdown))
    except UsageError as error:
        return (), f"No stacks to draw: {error}"
    if not samples.stacks:
        return (), f"No stacks to draw: {samples.sampled.reason or 'none was taken'}"
    return samples.stacks, ""


def _capture(breakdown: Breakdown) -> Capture:
    """The directory that holds the budget's evidence.

    Raises:
        UsageError: It is not there, or not complete.
    """
    if not breakdown.capture:
        raise UsageError("the budget was not stored")
    return read_capture(Path(breakdown.capture))


def call_stacks(breakdown: Breakdown, classifier: Classifier) -> Iterator[Picture]:
    """The stacks as an icicle."""
    stacks, missing = stacks_of(breakdown)
    if missing:
        yield Notes([missing])
        return
    tree = tree_of(stacks, classifier.fitted(stacks), call_title(breakdown))
    yield from icicle(tree, breakdown.wall.ns, "call")
    faults = sum(part.ns for category in breakdown.host for part in category.parts if part.name == "page_fault")
    if faults:
        counted = f"The budget counts {format_ns(faults)} of page faults as allocation"
        yield Notes([f"{counted}; in the stacks they are part of the kernels."])


def processes(breakdown: Breakdown, _classifier: Classifier) -> Iterator[Picture]:
    """Every timed block of every process, and their medians."""
    try:
        blocks = read_blocks(_capture(breakdown))
    except UsageError:
        return
    per_call = blocks.assign(ns=blocks["wall_ns"] / blocks["calls"])
    times = [group["ns"].to_list() for _, group in per_call.groupby("process")]
    unit_ns, unit = time_unit(breakdown.wall.ns)
    data = [
        {
            "type": "box",
            "name": str(number),
            "y": [rounded(ns / unit_ns) for ns in ns_of],
            "boxpoints": "all",
            "jitter": 0.6,
            "pointpos": 0,
            "marker": {"size": 3, "color": "#4477aa", "opacity": 0.6},
            "line": {"width": 1.2},
            "fillcolor": "rgba(68,119,170,0.12)",
        }
        for number, ns_of in enumerate(times, 1)
    ]
    layout = {
        "showlegend": False,
        "xaxis": {"title": {"text": "process"}, "type": "category"},
        "yaxis": {"title": {"text": f"{unit} per call"}},
        "margin": {"l": 60, "r": 8, "t": 8, "b": 44},
    }
    medians = ", ".join(format_ns(median(ns_of)) for ns_of in times)
    described = f"Timed blocks of {len(times)} processes; their medians are {medians}."
    yield Chart({"data": data, "layout": layout}, described, _CHART_PX)
    yield Notes([described])
