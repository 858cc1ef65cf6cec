"""The picture over time of an analyzed trace: the busiest thread by category, devices by kind and by what they idle for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from overhead_lens.report.looks import IDLE, ink
from overhead_lens.report.page.charts.axes import paled
from overhead_lens.report.page.model import Area, Lanes
from overhead_lens.traces.budgets import TraceStep
from overhead_lens.traces.model import Lane, OverTime
from overhead_lens.units import format_ns

_MOST_DEVICES = 8
_MOST_MARKS, _MOST_NAMED = 200, 20
_TICKS = 5


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
    return [
        Area(
            name,
            paled(ink(name)) if name.startswith(IDLE) else ink(name),
            ns,
            f"{name} {format_ns(sum(ns))} ({sum(ns) / wall_ns:.1%} of the window)",
        )
        for name, ns in lane.ns.items()
    ]
