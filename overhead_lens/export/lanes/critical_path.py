"""The critical path as a lane: its parts in order of time, and below it the threads and streams that it runs through.

An arrow leads from where the path leaves a thread or stream to where it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from overhead_lens.export.lanes.model import Lane, Section, Slice
from overhead_lens.export.names import readable
from overhead_lens.traces.critical_path.model import GAP, LATENCY, QUEUE

PATH = "critical path"

_FIRST_ARROW = 1 << 40
"""Beyond the numbers of the arrows between events."""


def path_sections(parts: pd.DataFrame) -> list[Section]:
    """A section with all parts; none if there are none.

    Args:
        parts: ``traces.critical_path.model.PART_COLUMNS``, in order of time.
    """
    if parts.empty:
        return []
    slices = list(_slices(parts))
    description = (
        "The chain that decides how long each step, or the window, takes. Below it by thread and stream, with an arrow where it "
        "goes from one to another."
    )
    lanes: dict[str, list[Slice]] = {}
    for name, piece in zip(parts["lane"].tolist(), slices, strict=True):
        lanes.setdefault(name, []).append(piece)
    below = tuple(Lane(readable(name), lanes[name]) for name in sorted(lanes))
    top = [piece._replace(flows_out=(), flows_in=()) for piece in slices]
    return [Section(Lane("Critical path", top, description=description), below)]


def _slices(parts: pd.DataFrame) -> Iterator[Slice]:
    columns = (parts[name].tolist() for name in ("step", "start_ns", "dur_ns", "lane", "kind", "name", "operator"))
    rows = list(zip(*columns, parts["reached_by"].tolist(), strict=True))
    for place, (step, start_ns, dur_ns, lane, kind, name, operator, reached_by) in enumerate(rows):
        lost = kind in (LATENCY, GAP, QUEUE)
        arguments = {"kind": kind, "operator": readable(operator), "reached by": reached_by}
        arguments |= {"before": readable(name)} if lost else {}
        yield Slice(
            start_ns,
            start_ns + dur_ns,
            kind.replace("_", " ") if lost else readable(name) or kind,
            PATH,
            {key: value for key, value in arguments.items() if value},
            flows_out=(_FIRST_ARROW + place,) if _goes_on(rows[place + 1 : place + 2], step, lane) else (),
            flows_in=(_FIRST_ARROW + place - 1,) if place and _goes_on([rows[place]], *_of(rows[place - 1])) else (),
            color=kind,
        )


def _of(row: tuple[int, int, int, str, str, str, str, str]) -> tuple[int, str]:
    return row[0], row[3]


def _goes_on(following: list[tuple[int, int, int, str, str, str, str, str]], step: int, lane: str) -> bool:
    """Whether the next part belongs to the same step and another lane."""
    return any(_of(row)[0] == step and _of(row)[1] != lane for row in following)
