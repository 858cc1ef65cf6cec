"""A trace over time: the busiest thread by category, devices by kind of work and what they idle for; the same by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from overhead_lens.report.looks import IDLE, ink
from overhead_lens.report.outline import Notes, Picture
from overhead_lens.report.page.charts.axes import INKS, linear_axis, numbered_axis, time_axis
from overhead_lens.report.page.model import Area, Axis, Lanes, Note, Plot, Series
from overhead_lens.report.text.blocks import cut
from overhead_lens.taxonomy.categories import CATEGORIES
from overhead_lens.traces.budgets import TraceStep
from overhead_lens.traces.model import Lane, OverTime
from overhead_lens.units import format_ns

_MOST_BARS = 250
_MOST_TICKS = 10
_MOST_DEVICES = 8
_MOST_MARKS, _MOST_NAMED, _TICKS = 200, 20, 5


def trace_steps(steps: Sequence[TraceStep]) -> list[Picture]:
    """The budget of every step of a trace, stacked; groups of steps in a row where they are many."""
    size, groups = _grouped(steps)
    series = list(_stacked(groups))
    slowest = max(range(len(steps)), key=lambda at: steps[at].window.wall_ns)
    wall_ns = steps[slowest].window.wall_ns
    if size > 1:
        series.append(_longest(groups))
    slowest_text = f"step {steps[slowest].step:,}: {format_ns(wall_ns)}"
    plot = Plot(
        series,
        _step_axis(groups),
        time_axis([wall_ns]),
        f"{len(steps):,} steps with the categories of the busiest thread; step {steps[slowest].step:,} is the slowest.",
        notes=[Note(slowest // size, wall_ns, slowest_text)],
    )
    if size == 1:
        return [plot]
    return [plot, Notes([f"A bar is the mean of {size:,} steps in a row; the open circle is the longest of them."])]


def _grouped(steps: Sequence[TraceStep]) -> tuple[int, list[Sequence[TraceStep]]]:
    size = max(1, -(-len(steps) // _MOST_BARS))
    return size, [steps[start : start + size] for start in range(0, len(steps), size)]


def _stacked(groups: Sequence[Sequence[TraceStep]]) -> Iterator[Series]:
    """A series for each category that has time, each bar on those before it."""
    below = [0.0] * len(groups)
    for at, category in enumerate(CATEGORIES):
        means = [sum(step.host[at].ns for step in group) / len(group) for group in groups]
        if any(means):
            ends = [(low, low + ns) for low, ns in zip(below, means, strict=True)]
            tooltips = [
                f"{_numbers(group)}: {category.name} {format_ns(ns)}" for group, ns in zip(groups, means, strict=True)
            ]
            places = range(len(groups))
            yield Series(category.name, category.ink, places, means, "bars", tooltips, ends, hatch=category.hatch)
            below = [high for _, high in ends]


def _numbers(group: Sequence[TraceStep]) -> str:
    first, last = group[0].step, group[-1].step
    return f"step {first:,}" if len(group) == 1 else f"steps {first:,} to {last:,}, mean"


def _longest(groups: Sequence[Sequence[TraceStep]]) -> Series:
    steps = [max(group, key=lambda step: step.window.wall_ns) for group in groups]
    tooltips = [f"step {step.step:,}: {format_ns(step.window.wall_ns)}" for step in steps]
    walls = [step.window.wall_ns for step in steps]
    return Series("longest step", "#808080", range(len(groups)), walls, tooltips=tooltips, symbol="ring")


def busy_steps(steps: Sequence[TraceStep]) -> list[Picture]:
    """How busy each device is in every step, at least two; nothing without devices."""
    _, groups = _grouped(steps)
    devices = [device.device for device in steps[0].devices]
    if not devices:
        return []
    edges = [at - 0.5 for at in range(len(groups))]
    series = []
    for at, device in enumerate(devices[:_MOST_DEVICES]):
        percents = [_busy_percent(group, at) for group in groups]
        series.append(Series(f"device {cut(device)}", INKS[at % len(INKS)], edges, percents, "steps"))
    described = f"The share of each of {len(steps):,} steps in which the devices were busy."
    return [Plot(series, _step_axis(groups), linear_axis(0, 103, "{:.0f} %".format, "device busy"), described, 140)]


def _busy_percent(group: Sequence[TraceStep], at: int) -> float:
    spans_ns = sum(step.devices[at].span_ns for step in group)
    return 100 * sum(step.devices[at].busy_ns for step in group) / max(1, spans_ns)


def _step_axis(groups: Sequence[Sequence[TraceStep]]) -> Axis:
    return numbered_axis([f"{group[0].step:,}" for group in groups], _MOST_TICKS, "step")


def strip(over_time: OverTime, steps: Sequence[TraceStep], thread: str) -> Lanes:
    """The lanes, at least one."""
    lanes = over_time.lanes[: 1 + _MOST_DEVICES]
    edges = over_time.edges_ns
    start_ns, wall_ns = edges[0], max(1, edges[-1] - edges[0])
    every = max(1, len(steps) // _MOST_MARKS), max(1, len(steps) // _MOST_NAMED)
    return Lanes(
        [(f"device {lane.device}" if lane.device else thread, _areas(lane, wall_ns)) for lane in lanes],
        [end - start for start, end in pairwise(edges)],
        [format_ns(wall_ns * at / (_TICKS - 1)) if at else "0" for at in range(_TICKS)],
        [
            ((step.window.start_ns - start_ns) / wall_ns, "" if at % every[1] else f"step {step.step}")
            for at, step in enumerate(steps)
            if not at % every[0]
        ],
        f"The window of {format_ns(wall_ns)} over time: the busiest thread by category, devices by kind of work.",
    )


def _areas(lane: Lane, wall_ns: int) -> list[Area]:
    areas = []
    for name, ns in lane.ns.items():
        # Idle time lets the page shine through.
        color = f"{ink(name)}73" if name.startswith(IDLE) else ink(name)
        areas.append(Area(name, color, ns, f"{name} {format_ns(sum(ns))} ({sum(ns) / wall_ns:.1%} of the window)"))
    return areas
