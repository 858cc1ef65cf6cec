"""Lanes of slices, and how slices that cross are spread over rows in which they nest.

Viewers draw one row of a lane as a stack of slices, each inside the one below. Slices of a real thread may cross (an
annotation that outlives the operator it began in); on one row a viewer would drop or shorten one of them. Every slice
goes on the first row on which it nests, so most lanes have one row and no slice is ever changed::

    time        0    2    4    6    8   10
    slices      A---------------]             A and B cross
                     C---]  B------------]
    row 0       A---------------]
                     C---]
    row 1                   B------------]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

Value = bool | int | float | str | list["Value"] | dict[str, "Value"]

ThreadKey = tuple[str, str]
"""Process and thread as the trace names them."""

MAX_DEPTH = 500
"""Slices open at once on one row: trace_processor drops those more than 512 deep (kMaxDepth in its slice_tracker.h)."""


class Slice(NamedTuple):
    """A named interval of one lane.

    Attributes:
        start_ns: Since the zero of the exported timeline, >= 0.
        end_ns: At or after the start.
        arguments: Shown with the slice; keys hold no dot, which viewers take as a path.
        flows_out: Numbers of the arrows that leave this slice.
        flows_in: Numbers of the arrows that arrive at it.
        color: The host category whose color it has, if the viewer allows; empty for a shade of violet by its name.
    """

    start_ns: int
    end_ns: int
    name: str
    category: str
    arguments: Mapping[str, Value] = {}
    flows_out: tuple[int, ...] = ()
    flows_in: tuple[int, ...] = ()
    color: str = ""


@dataclass(frozen=True, slots=True)
class Counter:
    """A quantity over time.

    Attributes:
        points: Time in ns since the zero of the exported timeline, and the value from then on; read once.
    """

    name: str
    unit: str
    points: Iterable[tuple[int, float]]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """Slices of one kind of one thread, or of no thread.

    Attributes:
        slices: Ordered by start, longer first; read once.
        thread: The thread it belongs to; None for one that stands on its own.
        group: Heading over lanes without a thread.
    """

    name: str
    slices: Iterable[Slice]
    thread: ThreadKey | None = None
    group: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A lane at the top level of a picture, with the lanes below it.

    Attributes:
        top: Without a thread; its description is written under it.
        below: Shown when it is opened.
    """

    top: Lane | Counter
    below: tuple[Lane | Counter, ...] = ()


class Begin(NamedTuple):
    """A slice starts on a row."""

    row: int
    slice: Slice


class End(NamedTuple):
    """The innermost open slice of a row ends."""

    row: int
    end_ns: int


def nest(slices: Iterable[Slice]) -> Iterator[Begin | End]:
    """Spread slices over rows so that on each they nest.

    A row's begins and ends come in time order, and at one instant in the order in which viewers must read them: ends
    before begins, the longer begin before the shorter. Slices without length at one instant nest in each other, as
    trace_processor nests them.

    Args:
        slices: Ordered by start, longer first.
    """
    rows: list[list[Slice]] = []
    for piece in slices:
        for row, stack in enumerate(rows):
            yield from _close(row, stack, piece.start_ns)
            if not stack or (piece.end_ns <= stack[-1].end_ns and len(stack) < MAX_DEPTH):
                break
        else:
            row, stack = len(rows), []
            rows.append(stack)
        stack.append(piece)
        yield Begin(row, piece)
    for row, stack in enumerate(rows):
        while stack:
            yield End(row, stack.pop().end_ns)


def _close(row: int, stack: list[Slice], now_ns: int) -> Iterator[End]:
    """End slices that are over at ``now_ns``; a slice without length stays open for others at the same instant."""
    while stack and stack[-1].end_ns <= now_ns and stack[-1].start_ns < now_ns:
        yield End(row, stack.pop().end_ns)
