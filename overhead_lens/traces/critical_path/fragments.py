"""What leads to each collective and to the end of each step of one rank: all that is kept when its graph is gone.

A path over ranks enters a rank at a collective. So of every collective, as of the end of every step, the longest chain that leads
there is kept, back to the collective before it on that chain::

    rank 0   step |----------[ c0 ]-------------[ c1 ]---------------| step ends
                   of c0 <--|      of c1 <-----|      of the end <---|

Fragments that meet are kept once from there on, and neighbours that are alike are one.
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
    """What stands before a node that is reached by the end of a collective, for its number; the same function leads back."""
    return _THROUGH - collective


@dataclass(frozen=True, slots=True)
class StepEnd:
    """Where the path of a step ends in one rank.

    Attributes:
        step: Its number; None for the whole window.
        node: The last node before its end; -1 for none.
        collective: Number of the collective that runs when it ends and is on its path; -1 for none.
        weight_ns, label: What runs from the node on, or from the window's start where there is none.
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
        ends: Of the steps that have a path, in order.
        time_ns: Per node.
        before: Per node: the node that leads to it, ``NOWHERE`` or ``through(collective)``.
        label: Per node: what takes all of the time since the one before it.
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
