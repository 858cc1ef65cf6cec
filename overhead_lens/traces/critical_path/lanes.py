"""The host's part of the graph: every thread as a chain of consecutive pieces, cut where something else meets it.

A piece has its recorded time as weight, or none if the thread waited for a device, for a backward pass on another thread or for
work, or if its activity is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overhead_lens.stats.values import Bools, Ints, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.host_budget import BACKWARD, ENGINE, ThreadPieces
from overhead_lens.traces.intervals import Union, is_among
from overhead_lens.traces.timeline import cut_at

Codes = npt.NDArray[np.int32]
Threads = Mapping[tuple[str, str], ThreadPieces]


@dataclass(frozen=True, slots=True)
class Chain:
    """One thread of the graph.

    Attributes:
        time_ns: int64, shape ``(n,)``, ascending: the nodes. The last is the window's end.
        weight_ns: int64, shape ``(n - 1,)``: from each node to the next.
        label: int32, shape ``(n - 1, 4)``: kind (a number in ``HOST_CATEGORIES``) of each interval, then codes of its name,
            operator and module, -1 for none.
    """

    time_ns: Ints
    weight_ns: Ints
    label: Codes

    def at(self, time_ns: Ints) -> Ints:
        """The node at each time."""
        return np.searchsorted(self.time_ns, time_ns, "left")


def chain(
    pieces: ThreadPieces,
    around: tuple[Ints, Ints],
    cuts_ns: Ints,
    blocked: tuple[Ints, Ints],
    passes: Union,
    *,
    is_busiest: bool,
) -> Chain:
    """The chain of a thread.

    Args:
        around: Codes of the innermost operator and module of each host event (``nearest``).
        cuts_ns: Where it is cut beside the ends of pieces, ascending and inside the window.
        blocked: Starts and ends of intervals in which it waits for a device.
        is_busiest: Whether it is the thread whose end is that of the window: what it waits for beyond devices counts.
    """
    end_ns = pieces.start_ns[-1] + pieces.dur_ns[-1]
    starts_ns, piece = cut_at(pieces.start_ns, cuts_ns[cuts_ns < end_ns])
    time_ns = np.append(starts_ns, end_ns)
    known = ~pieces.is_idle & ~_waits(pieces, passes, is_busiest=is_busiest)
    change = np.zeros(len(time_ns) + 1, dtype=np.int64)
    for edges, step in zip(blocked, (1, -1), strict=True):
        np.add.at(change, np.searchsorted(time_ns, edges, "left"), step)
    is_open = np.cumsum(change)[: len(time_ns) - 1] == 0
    event = taken(pieces.timeline.events, pieces.owner[piece])
    label = np.empty((len(piece), 4), dtype=np.int32)
    label[:, 0], label[:, 1] = pieces.categories()[piece], pieces.name[piece]
    for column, codes in enumerate(around, 2):
        label[:, column] = taken(codes, event)
    weight_ns = np.where(known[piece] & is_open, np.diff(time_ns), 0)
    return Chain(time_ns, weight_ns, label)


def _waits(pieces: ThreadPieces, passes: Union, *, is_busiest: bool) -> Bools:
    """Pieces in which the thread waits for another thread, or for something unknown."""
    gap = passing(pieces.names, (BACKWARD, ENGINE).__contains__)[pieces.name]
    if is_busiest:
        return passing(pieces.names, (BACKWARD,).__contains__)[pieces.name] & (pieces.owner < 0)
    # One of several autograd threads may begin after the pass does, or end before it.
    ends_ns = pieces.start_ns + pieces.dur_ns
    outer = gap & (is_among(pieces.start_ns, passes.start_ns) | is_among(ends_ns, passes.end_ns))
    # A call that waits for a device takes its own time beyond that of the device.
    elsewhere = pieces.attributed(lambda each: each.category == "wait" and each.part != "device")
    waiting: Bools = elsewhere | (outer & (pieces.owner < 0))
    return waiting


def nearest(host: HostEvents) -> tuple[Ints, Ints]:
    """Codes of the innermost operator and the innermost module at or around each host event, -1 for none."""
    step = passing(host.names, torch_names.PROFILER_STEP.match)
    module = passing(host.names, lambda name: name.startswith(torch_names.MODULE_PREFIX))
    around = host.around
    operator, inside = (around.nearest(mark) for mark in (host.operator & ~step[host.name], module[host.name]))
    return taken(host.name, operator), taken(host.name, inside)
