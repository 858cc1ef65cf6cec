"""The parts of an outline as HTML elements: tables with bars in their cells, and stacked bars.

Pages and notebooks say by role what their elements look like: pages by classes, notebooks by styles, since theirs have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TypeAlias

from overhead_lens.report import looks
from overhead_lens.report.outline import Bars, Cell, Length, Piece, Row, Table
from overhead_lens.report.text.blocks import cut
from overhead_lens.report.text.plain import plain

Attributes: TypeAlias = Callable[[str], str]
"""The attributes of an element by its role, with a space before them."""

LONGEST_TEXT = 400
# Longer texts are broken into lines.
_LONGEST_LINE = 32
_WIDTH, _HEIGHT = 1_000, 14
_BOX = f' xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true"'
_PATTERNS = {
    "x": "M0 0L6 6M6 0L0 6", "/": "M0 6L6 0", "\\": "M0 0L6 6", "|": "M3 0V6", "-": "M0 3H6", "+": "M3 0V6M0 3H6",
    ".": "M2 2h1v1h-1z",
}  # fmt: skip
_PATTERN_NAMES = {hatch: f"hatch-{number}" for number, hatch in enumerate(_PATTERNS)}


def shown(text: str) -> str:
    """A text as it stands in an element or an attribute: no markup, no control characters, of bounded length."""
    return escape(plain(cut(text, LONGEST_TEXT)))


def patterns() -> str:
    """SVG patterns that distinguish pieces of stacked bars without colors, for ``bars_html(hatched=True)``; once per document."""
    made = "".join(
        f'<pattern id="{_PATTERN_NAMES[hatch]}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" fill="none" stroke="#14171a" stroke-opacity=".3"/></pattern>'
        for hatch, path in _PATTERNS.items()
    )
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>{made}</defs></svg>\n'


def pattern_fill(hatch: str) -> str:
    """The ``fill`` of an area with a pattern; empty for a plain one."""
    name = _PATTERN_NAMES.get(hatch)
    return f"url(#{name})" if name else ""


def table_html(table: Table, attributes: Attributes) -> str:
    """The element of a table; a caption is the caller's."""
    numbers = [column.is_number for column in table.columns]
    heads = "".join(
        f"<th{attributes('th number' if is_number else 'th')}>{shown(column.name)}</th>"
        if column.name
        else f"<td{attributes('td')}></td>"
        for column, is_number in zip(table.columns, numbers, strict=True)
    )
    rows = "".join(_row(row, numbers, attributes) for row in table.rows)
    head = f"<tr{attributes('tr')}>{heads}</tr>\n" if any(column.name for column in table.columns) else ""
    return f"<table{attributes('table')}>{head}{rows}</table>"


def _row(row: Row, numbers: Sequence[bool], attributes: Attributes) -> str:
    cells = "".join(
        _cell(cell, row, at == 0, is_number, attributes)
        for at, (cell, is_number) in enumerate(zip(row.cells, numbers, strict=True))
    )
    return f"<tr{attributes('tr')}>{cells}</tr>\n"


def _cell(cell: Cell, row: Row, is_first: bool, is_number: bool, attributes: Attributes) -> str:
    is_short = len(cell.text) <= _LONGEST_LINE
    roles = " ".join(
        filter(None, ("td", "number" if is_number else "short" if is_short else "", cell.tone or row.tone))
    )
    if cell.length is not None:
        return f"<td{attributes('td')}>{_length_svg(cell.length, cell.look, attributes)}</td>"
    swatch = ""
    if cell.look and not is_number and not cell.pieces and not row.depth:
        area = f'<path d="M0 0H{_WIDTH}V{_HEIGHT}H0z" style="fill:{looks.ink(cell.look)}"></path>'
        swatch = f"<svg{_BOX}{attributes('swatch')}>{area}</svg>"
    bar = bar_svg(cell.pieces, sum(piece.size for piece in cell.pieces), attributes) if cell.pieces else ""
    text = f"{bar}{swatch}{shown(cell.text)}"
    if is_first and row.depth:  # every line of a long name
        text = f'<span style="all:unset;display:block;padding-left:{1.1 * row.depth:.1f}em">{text}</span>'
    return f"<td{attributes(roles)}>{text}</td>"


def _length_svg(length: Length, look: str, attributes: Attributes) -> str:
    """A bar with a whisker over its interval."""
    low, high = length.low * _WIDTH, length.high * _WIDTH
    middle = _HEIGHT / 2
    style = "stroke:currentColor;stroke-opacity:.7;stroke-width:2px"
    whisker = f'<path d="M{low:.1f} {middle}H{high:.1f}" style="{style}"></path>' if high > low else ""
    bar = f"{_rect(length.start * _WIDTH, (length.end - length.start) * _WIDTH, look)}</rect>"
    return f"<svg{_BOX}{attributes('length')}>{bar}{whisker}</svg>"


def bar_svg(pieces: Sequence[Piece], full: float, attributes: Attributes, *, hatched: bool = False) -> str:
    """Pieces side by side, each as wide as its share of ``full``."""
    drawn, left = [], 0.0
    for piece in pieces:
        width = _WIDTH * piece.size / full if full else 0.0
        if piece.size and piece.look:
            title = f"<title>{shown(piece.text)}</title></rect>"
            drawn.append(_rect(left, width, piece.look) + title)
            if hatched and (fill := pattern_fill(looks.hatch(piece.look))):
                drawn.append(_rect(left, width, piece.look, fill) + title)
        left += width
    return f"<svg{_BOX}{attributes('bar')}>{''.join(drawn)}</svg>"


def _rect(left: float, width: float, look: str, fill: str = "") -> str:
    """The element of a rectangle, still open."""
    place = f'x="{left:.1f}" y="0" width="{width:.1f}" height="{_HEIGHT}"'
    return f'<rect {place} style="fill:{fill or looks.ink(look)}">'


def bars_html(block: Bars, attributes: Attributes, *, hatched: bool = False) -> Iterator[str]:
    """Each bar below its name and its remark."""
    for bar in block.bars:
        head = f"<b{attributes('name')}>{shown(bar.name)}</b> <span{attributes('remark')}>{shown(bar.remark)}</span>"
        named = f"<div{attributes('over')}>{head}</div>" if bar.name or bar.remark else ""
        yield f"{named}{bar_svg(bar.pieces, bar.full, attributes, hatched=hatched)}\n"
