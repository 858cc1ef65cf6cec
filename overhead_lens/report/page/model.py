"""Pictures of a page as values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from overhead_lens.stats.values import Interval

Symbol: TypeAlias = Literal["circle", "ring", "square", "diamond", "triangle", "cross", "x"]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from ``low`` to ``high``, both positive if it is logarithmic.

    Attributes:
        ticks: Values and texts.
        title: What it shows, where the texts do not say it.
    """

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str = ""
    is_log: bool = False

    def share(self, value: float) -> float:
        """The place of a value: 0 at the axis's beginning, 1 at its end."""
        if not self.is_log:
            return (value - self.low) / (self.high - self.low)
        return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one name and color.

    Attributes:
        name: Its name in the legend; empty for none.
        y: None is a gap of a line.
        form: ``steps`` is a line that keeps each value until the next; ``bars`` reach from ``ends`` to ``ends``.
        tooltips: The text of each value, shown under the pointer.
        ends: The interval of each value.
        hatch: The pattern of bars (``looks.hatch``).
    """

    name: str
    ink: str
    x: Sequence[float]
    y: Sequence[float | None]
    form: Literal["points", "line", "steps", "bars"] = "points"
    tooltips: Sequence[str] = ()
    ends: Sequence[Interval] = ()
    symbol: Symbol = "circle"
    hatch: str = ""
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Upright:
    """A dashed line from the bottom to the top with a text beside it, over its interval."""

    x: float
    text: str
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A text beside a point."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Series over two axes.

    Attributes:
        alternative: What it shows, in one sentence, for those who do not see it.
        band: The values of ``y`` that are shaded.
    """

    series: Sequence[Series]
    x: Axis
    y: Axis
    alternative: str
    height_px: int = 260
    uprights: Sequence[Upright] = ()
    notes: Sequence[Note] = ()
    band: Interval | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """One frame, or one module, of an icicle.

    Attributes:
        parent: Its caller's place among the tiles, which is before its own; -1 for the outermost.
        size: Its width; those of its children sum to no more.
        values: The texts that describe the frame, one for each field of the icicle.
        is_framework: Whether it can be hidden as a frame of the framework's own Python.
    """

    parent: int
    text: str
    size: int
    ink: str
    values: Sequence[str]
    is_framework: bool = False


@dataclass(frozen=True, slots=True)
class Tiles:
    """A tree of tiles, and the names of their values."""

    fields: Sequence[str]
    tiles: Sequence[Tile]


@dataclass(frozen=True, slots=True)
class Icicle:
    """A tree with callers above what they call, to be searched, zoomed and walked with the keyboard.

    Attributes:
        callers: The same from the innermost frames on, each above its callers.
    """

    tree: Tiles
    alternative: str
    callers: Tiles | None = None


@dataclass(frozen=True, slots=True)
class Area:
    """Part of a lane, one color: ``ns`` per bucket, from below to above in the order of the lane."""

    name: str
    ink: str
    ns: Sequence[int]
    tooltip: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Strips over one axis of time, below each other.

    Attributes:
        lanes: Name and areas of each.
        lengths_ns: Length of each bucket, which is its whole height.
        ticks: What stands below the axis, evenly spread from its beginning to its end.
        marks: Where something begins, as a share of the axis, and its name.
        alternative: What it shows, for those who do not see it.
    """

    lanes: Sequence[tuple[str, Sequence[Area]]]
    lengths_ns: Sequence[int]
    ticks: Sequence[str]
    marks: Sequence[tuple[float, str]]
    alternative: str
