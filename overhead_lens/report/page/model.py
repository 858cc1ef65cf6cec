"""An HTML report as a value: the answer on top, then sections of charts and tables."""

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
class Table:
    """Rows of text.

    Attributes:
        heads: Names of the columns.
        rows: As many cells each.
        numbers: Columns, by their place, that hold numbers and are aligned by their last digit.
        caption: What the rows are.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Paragraphs: what was folded, what is missing and why."""

    paragraphs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Card:
    """A recommendation and its saving.

    Attributes:
        title: What was found and what it saves, in a sentence.
        evidence: What that rests on, in paragraphs.
        remedy: What to try.
    """

    title: str
    evidence: Sequence[str]
    remedy: str


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


Block: TypeAlias = Chart | Table | Text | Card | Lanes


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it.

    Attributes:
        heading: Its title.
        blocks: In reading order.
        is_open: Whether it is unfolded when the page opens; what most readers need is.
    """

    heading: str
    blocks: Sequence[Block]
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A report.

    Attributes:
        title: What was measured.
        answer: The one sentence that a reader came for.
        sections: The budget's bar first.
        provenance: Versions, command, machine: a name and a text each.
    """

    title: str
    answer: str
    sections: Sequence[Section]
    provenance: Sequence[tuple[str, str]] = ()
