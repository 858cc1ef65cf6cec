"""The longest chains to each collective and to each step's end in one rank: all that is kept of its graph.

A path over ranks enters a rank at a collective. For every collective and every step's end, the longest chain that leads there is
kept, back to the previous collective on that chain::

    rank 0   step |----------[ c0 ]-------------[ c1 ]---------------| step ends
                   of c0 <--|      of c1 <-----|      of the end <---|

Fragments that meet share their nodes from there on, and equal neighbors are merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from overhead_lens.stats.values import Ints
from overhead_lens.traces.critical_path.string_table import StringTable

NOWHERE = -1
"""Before a node to which nothing that was recorded leads."""

_THROUGH = -2

_Small = npt.NDArray[np.int32]
_Number = TypeVar("_Number", int, Ints)


def through(collective: _Number) -> _Number:
    """The value of ``before`` at a node reached from the end of a collective, by its number; its own inverse."""
    return _THROUGH - collective


@dataclass(frozen=True, slots=True)
class StepEnd:
    """Where the path of a step ends in one rank.

    Attributes:
        step: Its number; None for the whole window.
        node: The last node before its end; -1 for none.
        collective: Number of the collective that runs when it ends and is on its path; -1 for none.
        weight_ns, label: The work after the node, or after the window's start without a node.
    """

    step: int | None
    start_ns: int
    wall_ns: int
    node: int
    collective: int
    weight_ns: int
    label: int

    @property
    def end_ns(self) -> int:
        """End of the window."""
        return self.start_ns + self.wall_ns


@dataclass(frozen=True, slots=True, eq=False)
class PathFragments:
    """The chains of one rank; arrays of shape ``(nodes,)`` or ``(collectives,)``, times int64, numbers int32.

    Attributes:
        ends: Ends of the steps that have a path, in order.
        time_ns: Per node.
        before: Per node: the node that leads to it, ``NOWHERE`` or ``through(collective)``.
        label: Per node: what takes all of the time since the previous node.
        begins: Per collective: the node of its start.
        start_ns, dur_ns, own_label: Per collective, in the order of ``TraceAnalysis.collectives``.
        labels: What takes time, as the graph tells it apart; ``name`` only of device events.
        unexplained: The label of what nothing explains.
    """

    ends: tuple[StepEnd, ...]
    time_ns: Ints
    before: _Small
    label: _Small
    begins: _Small
    start_ns: Ints
    dur_ns: Ints
    own_label: _Small
    labels: StringTable
    unexplained: int
