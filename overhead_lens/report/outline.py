"""What a report says of a result, worded once: a title, a sentence, sections of tables, notes and pictures.

A function of ``outlines/`` makes it from a result; ``printers/`` show it on a terminal, as a page, in a notebook and as Markdown,
and know no result. Texts are what they are: each printer makes them harmless for its medium.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from overhead_lens.report.page.model import Icicle, Lanes, Plot
from overhead_lens.taxonomy.classifier import Classifier

Tone = Literal["", "bold", "dim", "warning", "code"]
Reach = Literal["everywhere", "report", "page"]
"""Where a section stands: in notebooks and Markdown too, in terminals and pages, or in pages (and a terminal's ``--all``)."""


@dataclass(frozen=True, slots=True)
class Length:
    """A bar: its start and end, and the ends of its interval, as shares of the full width."""

    start: float
    end: float
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a stacked bar; ``look`` is the name whose color and pattern it has (``looks.py``), empty for a gap."""

    look: str
    size: float
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: What it says; of a stacked bar its largest pieces.
        short: The same for a narrow terminal; as ``text`` where empty.
        look: The name whose color it has (``looks.py``).
        pieces: The stacked bar that it is.
    """

    text: str = ""
    short: str = ""
    look: str = ""
    tone: Tone = ""
    length: Length | None = None
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        is_number: Aligned at the right and never cut; else names, which a narrow terminal cuts in the middle.
        is_whole: Names that are never cut: code to be copied.
        gives_way: A narrow terminal leaves out the columns with the highest first, never those with 0.
    """

    name: str
    is_number: bool = True
    gives_way: int = 0
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: as many cells as the table has columns.

    Attributes:
        depth: How far its first name is indented.
        is_sum: What the others add up to, or the row for the rest: never left out.
        is_minor: Left out outside of pages.
    """

    cells: Sequence[Cell]
    depth: int = 0
    tone: Tone = ""
    is_sum: bool = False
    is_minor: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; empty columns are not shown.

    Attributes:
        caption: What the rows are; shown on pages, and by a terminal's ``--all``.
        brief: Rows that are shown outside of pages, sums not counted; all of them if None.
        more: What the rows are called that are left out; not a word of them if empty.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: str = ""
    brief: int | None = None
    more: str = "more"

    def shown(self, *, whole: bool) -> Table:
        """The table without empty columns and, unless ``whole``, with its first rows only."""
        selected = list(self.rows)
        if not whole:
            others = [row for row in self.rows if not (row.is_sum or row.is_minor)][: self.brief]
            sums = [row for row in self.rows if row.is_sum]
            left_out = len(self.rows) - len(others) - len(sums)
            selected = [*others, *([self._rest(left_out)] if left_out and self.more else []), *sums]
        columns = enumerate(zip(*(row.cells for row in selected), strict=True))
        filled = [at for at, cells in columns if any(cell.text or cell.length or cell.pieces for cell in cells)]
        return replace(self, rows=selected).columns_at(filled)

    def columns_at(self, places: Sequence[int]) -> Table:
        """The table with its columns at some places only."""
        rows = [replace(row, cells=[row.cells[at] for at in places]) for row in self.rows]
        return replace(self, columns=[self.columns[at] for at in places], rows=rows)

    def with_texts(self, text: Callable[[Cell], str]) -> Table:
        """The table with another text in each cell."""
        rows = [replace(row, cells=[replace(cell, text=text(cell)) for cell in row.cells]) for row in self.rows]
        return replace(self, rows=rows)

    def _rest(self, count: int) -> Row:
        at = next((at for at, column in enumerate(self.columns) if not column.is_number), 0)
        cells = [Cell()] * len(self.columns)
        cells[at] = Cell(f"{count:,} {self.more}")
        return Row(cells, tone="dim")


@dataclass(frozen=True, slots=True)
class Notes:
    """Paragraphs."""

    lines: Sequence[str]
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A stacked bar with a name and a remark; its pieces are shares of ``full``."""

    name: str
    remark: str
    pieces: Sequence[Piece]
    full: float


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars below one another: on pages and in notebooks."""

    bars: Sequence[Bar]
    alternative: str


@dataclass(frozen=True, slots=True)
class Card:
    """Advice; the title is a sentence that says what was found and what the advice saves."""

    title: str
    evidence: Sequence[str]
    remedy: str


Picture: TypeAlias = Plot | Icicle | Lanes | Table | Notes


@dataclass(frozen=True, slots=True)
class Drawing:
    """Pictures of a page, drawn only for one: they may need what the result was made of."""

    draw: Callable[[Classifier], Iterable[Picture]]


Block: TypeAlias = Table | Notes | Bars | Drawing | Card


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it; a page shows it unfolded where it ``is_open``."""

    heading: str
    blocks: Sequence[Block]
    reach: Reach = "report"
    is_open: bool = True

    @staticmethod
    def folded(heading: str, *blocks: Block) -> Section:
        """A section that stands on pages only, folded."""
        return Section(heading, blocks, "page", is_open=False)

    @staticmethod
    def filled(*parts: Section | None) -> list[Section]:
        """The sections that hold something, without blocks that hold nothing."""
        pairs = [(part, [block for block in part.blocks if _holds(block)]) for part in parts if part is not None]
        return [replace(part, blocks=blocks) for part, blocks in pairs if blocks]


def _holds(block: Block) -> bool:
    return bool(block.lines if isinstance(block, Notes) else block.rows if isinstance(block, Table) else True)


@dataclass(frozen=True, slots=True)
class Outline:
    """A result in words.

    Attributes:
        figure: What came out, in one figure.
        about: How it was measured, in short.
        sections: The first is the answer in full.
        ends: Last lines: where it is stored, what to try next. They are never broken.
        origin: Reads where the result comes from: versions, command, machine; names and texts.
        has_answer: Whether the first section is the answer in full; outside of pages that needs no heading.
        hint: What ``--all`` would print as well.
        others: Makes the outlines that a terminal prints below this one with ``--all``.
    """

    title: str
    sentence: str
    sections: Sequence[Section]
    figure: str = ""
    about: Sequence[str] = ()
    warnings: Sequence[str] = ()
    ends: Sequence[str] = ()
    origin: Callable[[], Sequence[tuple[str, str]]] = field(default=tuple)
    has_answer: bool = True
    hint: str = ""
    others: Callable[[], Iterable[Outline]] = field(default=tuple)

    def has_heading(self, section: Section) -> bool:
        """Whether one of the sections needs its heading outside of pages."""
        return not (self.has_answer and section is self.sections[0])
