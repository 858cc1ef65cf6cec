"""Pictures of a page as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Figure: TypeAlias = Mapping[str, Any]
"""``data`` and ``layout`` of a Plotly figure, as JSON writes them."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture.

    Attributes:
        figure: What Plotly draws.
        alternative: What it shows, in one sentence, for those who do not see it.
        height_px: Its height; the width is the page's.
        tree: Whether it is an icicle that can be searched, zoomed and walked with the keyboard.
    """

    figure: Figure
    alternative: str
    height_px: int = 260
    tree: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """Part of a lane, one color: ``ns`` per bucket, from below to above in the order of the lane."""

    name: str
    ink: str
    ns: Sequence[int]
    told: str


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
