"""An outline on a terminal, at any width.

Where a table is too wide, names are cut in the middle, intervals name their unit once, columns give way in the order that the
table says; then every row becomes lines of its own. A figure is never cut: without its last digits it is another figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from overhead_lens.report import looks
from overhead_lens.report.outline import Block, Card, Cell, Column, Length, Notes, Outline, Row, Section, Table
from overhead_lens.report.text.plain import plain

_GAP = 2
_BAR, _LEAST_BAR = 24, 10
# A column gives way rather than that a name which stays is cut to less than the first; the others are for what is left.
_GOOD_NAME, _FAIR_NAME, _LEAST_NAME = 36, 28, 14
_MOST_NAME = 72
_LEAST_PIECES = 18
_FEW_COLORS = (None, "standard", "windows")
_NUMBER, _UNIT = r"[+-]?\d(?:[\d.,]*\d)?", r" ?(?:%|[nµm]?s)(?!\w)"
_LAST = re.compile(f"(?<![\\w.]){_NUMBER}{_UNIT}$")
_ANY = re.compile(f"{_NUMBER}(?:{_UNIT})?")
Ink: TypeAlias = Callable[[str], str]
"""The color of a look on this terminal."""
_TONES = {"": "", "bold": "bold", "dim": "dim", "warning": "yellow", "code": ""}


def print_outline(console: Console, outline: Outline, *, whole: bool = False) -> None:
    """Print an outline; ``whole``: also the sections and rows that only pages show."""
    console.print(Screen(outline, whole=whole))
    for other in outline.others() if whole else ():
        console.print()
        print_outline(console, other, whole=True)
    if outline.hint and not whole:
        console.print(Text(f"\n{plain(outline.hint)}", style="dim"))
    for line in outline.ends:
        console.print(Text(plain(line), style="dim"), soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Screen:
    """An outline without its last lines; the first section alone if not ``report``."""

    outline: Outline
    whole: bool = False
    report: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines, none wider than the terminal."""
        ink = looks.color if console.color_system in _FEW_COLORS else looks.ink
        for line in self._lines(ink, options.max_width):
            indent = len(line.plain) - len(line.plain.lstrip()) if line.cell_len > options.max_width else 0
            shown = line[indent:] if indent else line
            for row in shown.wrap(console, options.max_width - indent):
                row.rstrip()
                row.pad_left(indent)
                yield row

    def _lines(self, ink: Ink, width: int) -> Iterator[Text]:
        """Title, what was measured, answer, sections, warnings."""
        outline = self.outline
        head = Text(plain(outline.title), style="bold")
        if outline.figure:
            head.append(f"   {plain(outline.figure)}")
        yield head
        for line in outline.about:
            yield Text(plain(line), style="dim")
        if outline.sentence:
            yield Text(plain(outline.sentence), style="bold")
        reached = [each for each in outline.sections if self.whole or each.reach != "page"]
        for section in reached if self.report else reached[:1]:
            yield from self._section(section, ink, width)
        for number, warning in enumerate(outline.warnings if self.report else (), 1):
            if number == 1:
                yield Text()
            yield Text(f"[{number}] {plain(warning)}", style="yellow")

    def _section(self, section: Section, ink: Ink, width: int) -> Iterator[Text]:
        lines = [line for block in section.blocks for line in _block(block, ink, width, whole=self.whole)]
        if lines and self.outline.has_heading(section):
            yield Text()
            yield Text(plain(section.heading), style="dim")
        yield from lines


def _style(cell: Cell, row: Row, ink: Ink) -> str:
    return " ".join(filter(None, (_TONES[cell.tone or row.tone], ink(cell.look) if cell.look else "")))


def _block(block: Block, ink: Ink, width: int, *, whole: bool) -> Iterator[Text]:
    if isinstance(block, Table):
        if whole and block.caption:
            yield Text(plain(block.caption), style="dim")
        yield from _table(block.shown(whole=whole), ink, width)
    elif isinstance(block, Notes):
        yield from (Text(plain(line), style=_TONES[block.tone], overflow="fold") for line in block.lines)
    elif isinstance(block, Card):
        yield Text(plain(block.title))
        grey = [*(block.evidence if whole else ()), f"try: {block.remedy}"]
        yield from (Text(f"   {plain(line)}", style="dim") for line in grey if line)


def _table(table: Table, ink: Ink, width: int) -> Iterator[Text]:
    """The widest form that fits."""
    fitted = _fitted(table, width)
    if fitted is None:
        yield from _stacked(_fewer_columns(table, 0), ink)
        return
    table, widths = fitted
    heads = [Cell(plain(column.name), tone="dim") for column in table.columns]
    rows = [Row(heads), *table.rows] if any(column.name for column in table.columns) else table.rows
    for row in rows:
        yield _line(table.columns, row, widths, ink)


def _fitted(table: Table, width: int) -> tuple[Table, list[int]] | None:
    """The table with the most columns that fits, and their widths; None if none does."""
    for stays, goes in ((_GOOD_NAME, _FAIR_NAME), (_FAIR_NAME, _FAIR_NAME), (_LEAST_NAME, _LEAST_NAME)):
        for most in sorted({column.gives_way for column in table.columns}, reverse=True):
            candidate = _fewer_columns(table, most)
            for form in (candidate, candidate.with_texts(lambda cell: cell.short or cell.text)):
                widths = [_natural(form, at) for at in range(len(form.columns))]
                limits = [goes if column.gives_way else stays for column in form.columns]
                least = [_least(form, at, wide, limits[at]) for at, wide in enumerate(widths)]
                room = width - _GAP * (len(widths) - 1)
                if sum(least) <= room:
                    return form, _shared(widths, least, room)
    return None


def _fewer_columns(table: Table, most: int) -> Table:
    """Without the columns that give way before ``most``."""
    return table.columns_at([at for at, column in enumerate(table.columns) if column.gives_way <= most])


def _natural(table: Table, at: int) -> int:
    widths = [cell_len(plain(table.columns[at].name))]
    for row in table.rows:
        cell = row.cells[at]
        widths.append(_BAR if cell.length else cell_len(plain(cell.text)) + (2 * row.depth if at == 0 else 0))
    is_rigid = table.columns[at].is_number or table.columns[at].is_whole
    return max(widths) if is_rigid else min(max(widths), _MOST_NAME)


def _least(table: Table, at: int, natural: int, name: int) -> int:
    """The width below which a column does not go."""
    if any(row.cells[at].length for row in table.rows):
        return _LEAST_BAR
    if any(row.cells[at].pieces for row in table.rows):
        return min(natural, _LEAST_PIECES)
    is_rigid = table.columns[at].is_number or table.columns[at].is_whole
    return natural if is_rigid else min(natural, name)


def _shared(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that fit: bars shrink first, then the widest names, letter by letter."""
    result = list(widths)
    while sum(result) > room:
        able = [at for at in range(len(result)) if result[at] > least[at]]
        bars = [at for at in able if least[at] == _LEAST_BAR]
        result[max(bars or able, key=lambda at: result[at])] -= 1
    return result


def _line(columns: Sequence[Column], row: Row, widths: Sequence[int], ink: Ink) -> Text:
    line = Text(no_wrap=True, overflow="ignore")
    for at, (column, cell, width) in enumerate(zip(columns, row.cells, widths, strict=True)):
        indent = "  " * row.depth if at == 0 else ""
        shown = indent + cut_middle(_words(cell, width), width - len(indent))
        pad = " " * (width - cell_len(shown))
        before, after = (pad, "") if column.is_number else ("", pad)
        line.append(before).append(shown, style=_style(cell, row, ink)).append(after)
        line.append(" " * _GAP if at < len(columns) - 1 else "")
    line.rstrip()
    return line


def _words(cell: Cell, width: int) -> str:
    """A bar; else the text, of names with their figures as many as there is room for."""
    if cell.length:
        return bar(cell.length, width)
    words = plain(cell.text)
    while cell_len(words) > width and ", " in words and _LAST.search(words):
        words = words.rpartition(", ")[0]
    return words


def bar(length: Length, width: int = _BAR) -> str:
    """A bar of eighths of a cell that begins at a whole one; anything above zero shows."""
    if length.end <= length.start:
        return ""
    start = min(width - 1, round(length.start * width))
    eighths = max(1, round(length.end * width * 8) - 8 * start)
    return " " * start + "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def cut_middle(name: str, width: int) -> str:
    """At most that width of a name: its beginning and its end. A figure there stays whole, unless it is all of the name."""
    if cell_len(name) <= width:
        return name
    first, last = _ANY.match(name), _LAST.search(name)
    room = max(0, width - 1)
    behind = max(room - max(room // 2, len(first[0]) if first else 0), len(last[0]) if last else 0)
    front, back = name[: max(0, room - behind)], name[len(name) - behind :]
    # Some letters take two cells.
    while cell_len(front + back) > room:
        front, back = (front[:-1], back) if cell_len(front) > cell_len(back) else (front, back[1:])
    for figure in _ANY.finditer(name):
        if figure.start() < len(front) < figure.end():
            front = name[: figure.start()]
        if figure.start() < len(name) - len(back) < figure.end():
            back = name[figure.end() :]
    return f"{front}…{back}" if front or back else f"{name[:room]}…"


def _stacked(table: Table, ink: Ink) -> Iterator[Text]:
    """Each row as lines: its first cell, then every other one with the column's name."""
    for row in table.rows:
        first, *others = row.cells
        yield Text("  " * row.depth + plain(first.text), style=_style(first, row, ink))
        for column, cell in zip(table.columns[1:], others, strict=True):
            if cell.text:
                head = f"  {'  ' * row.depth}{plain(column.name)}".rstrip() + " "
                yield Text.assemble((head, "dim"), (plain(cell.text), _style(cell, row, ink)))
