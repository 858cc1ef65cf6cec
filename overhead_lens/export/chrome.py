"""A trace as Chrome's JSON (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).

Viewers drop complete events of one thread that cross; here each row of a lane is a thread of its own, on which events
nest. Times are microseconds since the first event, whose float64 holds every nanosecond of the first 104 days.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from overhead_lens.analysis.model import Breakdown
from overhead_lens.export.budget_lane import budget_lane
from overhead_lens.export.event_lanes import event_lanes
from overhead_lens.export.evidence import Evidence
from overhead_lens.export.lanes import Begin, Lane, nest
from overhead_lens.export.names import readable
from overhead_lens.export.output import replacing_text
from overhead_lens.units import NS_PER_US


def write_chrome(path: Path, breakdown: Breakdown | None, evidence: Evidence | None = None) -> None:
    """Write the budget and the events; compressed where the name ends in ``.gz``.

    Raises:
        UsageError: The file cannot be written.
    """
    lanes = [] if breakdown is None else [budget_lane(breakdown)]
    lanes += event_lanes(evidence or Evidence())
    with replacing_text(path) as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        for number, event in enumerate(_events(lanes)):
            file.write(("," if number else "") + json.dumps(event, separators=(",", ":")) + "\n")
        file.write("]}\n")


def _events(lanes: list[Lane]) -> Iterator[dict[str, Any]]:
    processes: dict[str, int] = {}
    thread = 0
    for lane in lanes:
        owner = readable(lane.thread[0]) if lane.thread else lane.group or lane.name
        if owner not in processes:
            processes[owner] = len(processes) + 1
            yield _name("process_name", processes[owner], 0, owner)
        rows: dict[int, int] = {}
        for step in nest(lane.slices):
            if not isinstance(step, Begin):
                continue
            if step.row not in rows:
                thread += 1
                rows[step.row] = thread
                label = lane.name if lane.thread is None else f"{lane.name} of {readable(lane.thread[1])}"
                yield _name("thread_name", processes[owner], thread, label)
            yield {
                "ph": "X",
                "name": step.slice.name,
                "cat": step.slice.category,
                "pid": processes[owner],
                "tid": rows[step.row],
                "ts": step.slice.start_ns / NS_PER_US,
                "dur": (step.slice.end_ns - step.slice.start_ns) / NS_PER_US,
                "args": dict(step.slice.arguments),
            }


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
