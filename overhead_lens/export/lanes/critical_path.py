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
    """A section with all parts (``PART_COLUMNS``, in order of time); none if there are none."""
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
    step, lane = parts["step"].to_numpy(), parts["lane"].to_numpy()
    # Whether the path goes on in another lane of the same step, before the first part and after each.
    changes = [False, *((step[1:] == step[:-1]) & (lane[1:] != lane[:-1])).tolist(), False]
    columns = (parts[name].tolist() for name in ("start_ns", "dur_ns", "kind", "name", "operator", "reached_by"))
    for place, (start_ns, dur_ns, kind, name, operator, reached_by) in enumerate(zip(*columns, strict=True)):
        lost = kind in (LATENCY, GAP, QUEUE)
        arguments = {"kind": kind, "operator": readable(operator), "reached by": reached_by}
        arguments |= {"before": readable(name)} if lost else {}
        yield Slice(
            start_ns,
            start_ns + dur_ns,
            kind.replace("_", " ") if lost else readable(name) or kind,
            PATH,
            {key: value for key, value in arguments.items() if value},
            flows_out=(_FIRST_ARROW + place,) if changes[place + 1] else (),
            flows_in=(_FIRST_ARROW + place - 1,) if changes[place] else (),
            color=kind,
        )
