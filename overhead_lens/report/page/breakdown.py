"""The page of a budget: the bar, the sampled stacks, what else is known of the call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from overhead_lens.budget.model import Breakdown, DeviceShare, GuardGroup, Operator, Reading
from overhead_lens.captures.directory import Capture, read_capture
from overhead_lens.errors import UsageError
from overhead_lens.instruments.clock.evidence import read_blocks
from overhead_lens.instruments.samples.evidence import read_samples
from overhead_lens.report.page.charts.axes import rounded, time_unit
from overhead_lens.report.page.charts.bars import Bar, Stretch, bars_chart
from overhead_lens.report.page.charts.host import host_blocks
from overhead_lens.report.page.charts.icicle import icicle
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from overhead_lens.report.text.blocks import call_title, measured_text
from overhead_lens.report.text.breakdown import sentence
from overhead_lens.samplers.py_spy import PySpy
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import HATCHES, INKS
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.units import format_ns

_MOST_ROWS = 40
_GUARD_GROUPS = {
    "kind": "kind",
    "place": "place",
    "layer": "layer",
    "module": "module",
    "filter": "left out by the filter",
}
_MOST_OPERATORS = 60
_LEAST_OPERATOR = 0.005
_CHART_PX = 300


def breakdown_page(breakdown: Breakdown, classifier: Classifier) -> Page:
    """The page of one measured call."""
    wall = breakdown.wall
    title = f"{call_title(breakdown)}: {format_ns(wall.ns)} per call"
    return Page(title, sentence(breakdown), list(_sections(breakdown, classifier)), provenance(breakdown))


def provenance(breakdown: Breakdown, side: str = "") -> list[tuple[str, str]]:
    """Where a budget comes from: what ran, on which machine, with which versions."""
    wall = breakdown.wall
    parameters = ", ".join(f"{name}={value}" for name, value in breakdown.subject.params.items())
    pairs = [
        ("measured", call_title(breakdown)),
        ("parameters", parameters),
        ("processes", f"{wall.processes}, with {wall.blocks:,} blocks of {wall.calls:,} calls in all, unprofiled"),
        *((name, str(value)) for name, value in breakdown.environment.items() if isinstance(value, (str, int, float))),
        ("capture", breakdown.capture),
    ]
    return [(f"{side} {name}".strip(), text) for name, text in pairs if text]


def stacks_of(breakdown: Breakdown) -> tuple[Sequence[Stack], str]:
    """The stacks that were sampled in the call, or why there are none."""
    try:
        samples = read_samples(_capture(breakdown))
    except UsageError as error:
        return (), f"No stacks to draw: {error}"
    if not samples.stacks:
        return (), f"No stacks to draw: {samples.taken.reason or 'none was taken'}"
    return samples.stacks, ""


def _capture(breakdown: Breakdown) -> Capture:
    """The directory that holds the budget's evidence.

    Raises:
        UsageError: It is not there, or not complete.
    """
    if not breakdown.capture:
        raise UsageError("the budget was not stored")
    return read_capture(Path(breakdown.capture))


def _sections(breakdown: Breakdown, classifier: Classifier) -> Iterator[Section]:
    wall = breakdown.wall
    yield Section(
        "Where the time of a call goes",
        host_blocks(call_title(breakdown), breakdown.host, wall, "call"),
    )
    if breakdown.device is not None:
        yield Section("Device: busy and idle", list(_device(breakdown.device, wall.ns)))
    yield Section("Sampled stacks", list(_stacks(breakdown, classifier)))
    if breakdown.operators is not None and breakdown.operators.children:
        yield Section("Operators", [_operators(breakdown.operators)], is_open=False)
    if breakdown.guards:
        yield Section("Guards", list(_guards(breakdown)))
    if breakdown.cross_checks:
        yield Section("Cross-checks", [_checks(breakdown)], is_open=False)
    if processes := _processes(breakdown):
        yield Section("Wall time per process", processes, is_open=False)
    if breakdown.warnings:
        yield Section("Warnings", [Text(breakdown.warnings)])


def _stacks(breakdown: Breakdown, classifier: Classifier) -> Iterator[Block]:
    stacks, missing = stacks_of(breakdown)
    if missing:
        yield Text([missing])
        return
    tree = tree_of(stacks, classifier.fitted(stacks), call_title(breakdown))
    yield from icicle(tree, breakdown.wall.ns, "call")
    faults = sum(part.ns for category in breakdown.host for part in category.parts if part.name == "page_fault")
    notes = [f"Samples: {PySpy.sees.sentence}"]
    if faults:
        notes.append(
            f"The budget counts {format_ns(faults)} of page faults as allocation; in the stacks they are part of the kernels."
        )
    yield Text(notes)


def _device(device: DeviceShare, wall_ns: int) -> Iterator[Block]:
    kinds = (("compute", device.compute_ns), ("communication", device.communication_ns), ("copy", device.copy_ns))
    inks = dict(zip(("compute", "communication", "copy"), ("#54a24b", "#b279a2", "#4c78a8"), strict=True))
    busy = [Stretch(name, inks[name], "", ns, f"{name} {format_ns(ns)}") for name, ns in kinds if ns]
    idle = [
        Stretch(
            f"idle: {name}", INKS.get(name, "#bab0ac"), HATCHES.get(name, ""), ns, f"idle due to {name} {format_ns(ns)}"
        )
        for name, ns in sorted(device.idle_blame.items(), key=lambda item: -item[1])
        if ns
    ]
    rows = [
        Bar("busy", f"{format_ns(device.busy_ns)}, {device.busy_ns / max(1, wall_ns):.1%}", busy, wall_ns),
        Bar("idle, due to the host's", f"{format_ns(device.idle_ns)}", idle, wall_ns),
    ]
    yield bars_chart(
        rows, f"Device {device.device}: busy {format_ns(device.busy_ns)}, idle {format_ns(device.idle_ns)}."
    )
    kernels = [
        (format_ns(kernel.ns), f"{kernel.per_call:.3g}", kernel.kind, kernel_name(kernel.name)) for kernel in device.top
    ]
    yield Table(("time", "per call", "kind", "kernel"), kernels, frozenset({0, 1}), "costliest kernels and copies")


def _operators(root: Operator) -> Table:
    """The operators as a table, indented by depth, those of little time left out."""
    rows: list[tuple[str, ...]] = []
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        own = sorted(((ns, name) for name, ns in node.categories.items() if ns), reverse=True)[:3]
        told = ", ".join(f"{name} {format_ns(ns)}" for ns, name in own)
        rows.append((f"{'· ' * depth}{node.name}", format_ns(node.total_ns), format_ns(node.self_ns), told))
        heavy = [child for child in node.children if child.total_ns >= _LEAST_OPERATOR * root.total_ns]
        pending += [(child, depth + 1) for child in reversed(heavy)]
    heads = ("operator", "total", "self", "self time by category")
    return Table(heads, rows[:_MOST_OPERATORS], frozenset({1, 2}), "as called from one another, by samples")


def _guards(breakdown: Breakdown) -> Iterator[Block]:
    """By kind, by module, and one by one."""
    guards = breakdown.guards
    for by, heading in _GUARD_GROUPS.items():
        if groups := [group for group in breakdown.guard_groups if group.by == by]:
            yield _grouped(groups, heading)
    rows = [
        (*map(_time, (guard.sampled_ns, guard.warm_ns, guard.cold_ns)), guard.guard, guard.cause or "")
        for guard in guards[:_MOST_ROWS]
    ]
    heads = ("in the call", "warm", "cold", "guard", "needed by")
    more = len(guards) - len(rows)
    yield Table(heads, rows, frozenset({0, 1, 2}), f"the costliest; {more:,} more are left out" if more > 0 else "each")
    if breakdown.compile_notes:
        yield Text([f"{note.kind} at {note.place}: {note.reason}" for note in breakdown.compile_notes])


def _grouped(groups: Sequence[GuardGroup], heading: str) -> Table:
    rows = [
        (
            group.name + (f", each of {group.layers}" if group.layers else ""),
            f"{group.count:,}",
            _time(group.sampled_ns),
            format_ns(group.warm_ns),
        )
        for group in groups[:_MOST_ROWS]
    ]
    return Table((heading, "guards", "in the call", "warm"), rows, frozenset({1, 2, 3}), f"by {heading}")


def _time(ns: float | None) -> str:
    return "" if ns is None else format_ns(ns)


def _checks(breakdown: Breakdown) -> Table:
    rows = []
    for check in breakdown.cross_checks:
        bound = {"upper": "≤ ", "lower": "≥ ", None: ""}[check.bound]
        samples, trace, ablation = map(_reading, (check.samples, check.trace, check.ablation))
        verdict = "agree" if check.agree else "DISAGREE"
        rows.append((check.category, samples, trace, f"{bound}{ablation}" if ablation else "", verdict))
    return Table(("category", "samples", "trace", "ablation", "verdict"), rows, frozenset(), "independent evidence")


def _reading(reading: Reading | None) -> str:
    return "" if reading is None else measured_text(reading)


def _processes(breakdown: Breakdown) -> list[Block]:
    """Every timed block of every process, and their medians."""
    try:
        blocks = read_blocks(_capture(breakdown))
    except UsageError:
        return []
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
    return [Chart({"data": data, "layout": layout}, described, _CHART_PX), Text([described])]
