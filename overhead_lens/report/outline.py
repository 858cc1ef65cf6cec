"""What a report says of a result, worded once: a title, a sentence, sections of tables, notes and pictures.

A function of ``outlines/`` makes it from a result; ``printers/`` show it on a terminal, as a page, in a notebook and as Markdown,
and know no result. Texts are what they are: each printer makes them harmless for its medium.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from overhead_lens.report.page.model import Icicle, Lanes, Plot
from overhead_lens.report.text.blocks import interval_text, signed_interval_text
from overhead_lens.stats.estimate import Measured
from overhead_lens.stats.values import Interval
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import NS_PER_MS, NS_PER_S, NS_PER_US, format_ns, format_signed_ns

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
    """Part of a stacked bar.

    Attributes:
        look: The name whose color and pattern it has (``looks.py``); empty for a gap.
    """

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


def names(name: str, gives_way: int = 0) -> Column:
    """A column of names and other words."""
    return Column(name, is_number=False, gives_way=gives_way)


def numbers(*heads: str, gives_way: int = 0) -> list[Column]:
    """Columns of figures."""
    return [Column(head, gives_way=gives_way) for head in heads]


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
        kept = list(self.rows)
        if not whole:
            others = [row for row in self.rows if not (row.is_sum or row.is_minor)][: self.brief]
            sums = [row for row in self.rows if row.is_sum]
            left_out = len(self.rows) - len(others) - len(sums)
            kept = [*others, *([self._rest(left_out)] if left_out and self.more else []), *sums]
        said = [at for at in range(len(self.columns)) if any(_says(row.cells[at]) for row in kept)]
        rows = [Row([row.cells[at] for at in said], row.depth, row.tone) for row in kept]
        return Table([self.columns[at] for at in said], rows, self.caption)

    def _rest(self, count: int) -> Row:
        at = next((at for at, column in enumerate(self.columns) if not column.is_number), 0)
        cells = [Cell()] * len(self.columns)
        cells[at] = Cell(f"{count:,} {self.more}")
        return Row(cells, tone="dim")


def _says(cell: Cell) -> bool:
    return bool(cell.text or cell.length or cell.pieces)


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
    """Something that a reader may do, and what it saves.

    Attributes:
        title: What was found and what it saves, in a sentence.
    """

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
    """A heading and what stands below it.

    Attributes:
        is_open: Whether a page shows it unfolded.
    """

    heading: str
    blocks: Sequence[Block]
    reach: Reach = "report"
    is_open: bool = True


def folded(heading: str, *blocks: Block) -> Section:
    """A section that stands on pages only, folded."""
    return Section(heading, blocks, "page", is_open=False)


def sections(*parts: Section | None) -> list[Section]:
    """The sections that hold something, without blocks that hold nothing."""
    kept = [(part, [block for block in part.blocks if _holds(block)]) for part in parts if part is not None]
    return [replace(part, blocks=blocks) for part, blocks in kept if blocks]


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


# ---------------------------------------------------------------- rows and cells
def row(*cells: Cell | str, depth: int = 0, tone: Tone = "", is_sum: bool = False, is_minor: bool = False) -> Row:
    """A row; a text is a cell without a look."""
    made = [Cell(cell) if isinstance(cell, str) else cell for cell in cells]
    return Row(made, depth, tone, is_sum, is_minor)


def left_out(count: int, what: str) -> list[str]:
    """That something is left out; nothing for none."""
    return [f"{count:,} {what} are left out; --json has them."] if count > 0 else []


def text(value: str, look: str = "", tone: Tone = "") -> Cell:
    """Words."""
    return Cell(value, look=look, tone=tone)


def time(ns: float | None) -> Cell:
    """A duration; nothing for None."""
    return Cell("" if ns is None else format_ns(ns))


def signed(ns: float | None) -> Cell:
    """A difference of durations; nothing for None."""
    return Cell("" if ns is None else format_signed_ns(ns))


def share(value: float) -> Cell:
    """A share in percent."""
    return Cell(f"{value:.1%}")


def count(value: int) -> Cell:
    """A whole number."""
    return Cell(f"{value:,}")


def bounds(interval: Interval | None) -> Cell:
    """An interval of a duration; nothing for None."""
    return Cell() if interval is None else Cell(interval_text(interval), _one_unit(interval, ""))


def signed_bounds(interval: Interval | None) -> Cell:
    """An interval of a difference; nothing for None."""
    return Cell() if interval is None else Cell(signed_interval_text(interval), _one_unit(interval, "+"))


def measured_bounds(measured: Measured) -> Cell:
    """The interval of a measured time; if it is not a 95 % interval, with its kind."""
    if measured.has_level:
        return bounds(measured.ci95_ns)
    return Cell(f"{interval_text(measured.ci95_ns)} (range)" if measured.is_range else "no interval")


def length(value: float, whole: float, interval: Interval | None = None, look: str = "", begin: float = 0.0) -> Cell:
    """A bar of ``value``, to the left of ``begin`` where it is negative; the full width is ``whole``."""
    ends = (min(0.0, value), max(0.0, value), *(interval or (0.0, 0.0)))
    places = [min(1.0, max(0.0, (begin + end) / whole)) if whole else 0.0 for end in ends]
    return Cell(look=look, length=Length(*places))


def _one_unit(interval: Interval, sign: str) -> str:
    """``LOW .. HIGH`` with the larger end's unit once."""
    most = max(map(abs, interval))
    unit_ns, unit = next(
        ((ns, name) for ns, name in ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "µs")) if most >= 0.9995 * ns),
        (1, "ns"),
    )
    scaled = most / unit_ns
    decimals = 0 if (unit == "ns" and scaled >= 9.95) or scaled >= 999.5 else 2 if scaled < 99.995 else 1
    low, high = (f"{end / unit_ns:{sign}.{decimals}f}" for end in interval)
    return f"{low} .. {high} {unit}"
