"""The budget and its evidence as Chrome's JSON trace (``.json``, ``.json.gz``).

Format: "Trace Event Format" of the Chromium project. Times are microseconds with the nanoseconds as exact decimals.
Complete events (``X``) of one thread must nest, or viewers drop them; so every row of a lane is a thread with a number
of its own, whose name says which thread of the trace it shows. Sampled stacks have no place in this format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pandas as pd

from overhead_lens.export.lanes.events import event_lanes
from overhead_lens.export.lanes.identities import Identities
from overhead_lens.export.lanes.model import Begin, Lane, Slice, Value, nest
from overhead_lens.export.output import replacing_text
from overhead_lens.units import NS_PER_US

_Event = dict[str, Value]

_PROCESS = "python"


def write_chrome(path: Path, budget: Lane, events: pd.DataFrame) -> None:
    """Write a JSON trace of the budget, and of the events with their arrows; compressed for a name in ``.gz``.

    Args:
        budget: Stands first, as a process of its own.
        events: As of ``event_lanes``.
    """
    lanes = [budget, *event_lanes(events)]
    with replacing_text(path) as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[')
        separator = "\n"
        for event in _events(lanes):
            file.write(separator + event)
            separator = ",\n"
        file.write("\n]}\n")


def _events(lanes: list[Lane]) -> Iterator[str]:
    numbers = Identities(lane.thread for lane in lanes if lane.thread is not None)
    processes: dict[str, int] = {}
    rows = count(1)
    for lane in lanes:
        name = lane.group if lane.thread is None else f"{_PROCESS} ({lane.thread[0]})"
        if name not in processes:
            processes[name] = numbers.fresh() if lane.thread is None else numbers.processes[lane.thread[0]]
            yield from _named("process", name, len(processes), processes[name], 0)
        yield from _lane(lane, processes[name], rows)


def _lane(lane: Lane, process: int, rows: Iterator[int]) -> Iterator[str]:
    name = lane.name if lane.thread is None else f"thread {lane.thread[1]}: {lane.name}"
    threads: list[int] = []
    for step in nest(lane.slices):
        if not isinstance(step, Begin):
            continue
        if step.row == len(threads):
            threads.append(next(rows))
            yield from _named("thread", name, threads[-1], process, threads[-1])
        yield from _slice(step.slice, process, threads[step.row])


def _slice(piece: Slice, process: int, thread: int) -> Iterator[str]:
    event: _Event = {"ph": "X", "name": piece.name, "cat": piece.category, "pid": process, "tid": thread}
    if piece.arguments:
        event["args"] = dict(piece.arguments)
    yield _timed(event, ts=piece.start_ns, dur=piece.end_ns - piece.start_ns)
    # An arrow binds to the slice that was written last on its thread; "bp" makes its end do so as well.
    arrow: _Event = {"name": "flow", "cat": "flow", "pid": process, "tid": thread}
    for number in piece.flows_out:
        yield _timed({"ph": "s", "id": number, **arrow}, ts=piece.start_ns)
    for number in piece.flows_in:
        yield _timed({"ph": "f", "bp": "e", "id": number, **arrow}, ts=piece.start_ns)


def _named(what: str, name: str, order: int, process: int, thread: int) -> Iterator[str]:
    """The name of a process or thread, and its place among the others."""
    for key, field, value in ((f"{what}_name", "name", name), (f"{what}_sort_index", "sort_index", order)):
        yield json.dumps({"ph": "M", "name": key, "pid": process, "tid": thread, "args": {field: value}})


def _timed(event: _Event, **times_ns: int) -> str:
    """The event as JSON with times in microseconds, as decimal text: a float would not hold every nanosecond."""
    times = ",".join(f'"{key}":{ns // NS_PER_US}.{ns % NS_PER_US:03d}' for key, ns in times_ns.items())
    return f"{json.dumps(event, separators=(',', ':'))[:-1]},{times}}}"
