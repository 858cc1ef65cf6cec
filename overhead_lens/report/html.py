"""A budget or a difference in a notebook: a bar of inline SVG, a small table, what the report says.

Notebooks bring style sheets of their own. Every element drops what they say of it and styles itself; only the page's text color
is taken over, so that it is read on a dark page and on a light one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from overhead_lens.budget.model import Breakdown
from overhead_lens.report.text.blocks import (
    bounds_cell,
    bounds_text,
    call_title,
    cut,
    interval_text,
)
from overhead_lens.report.text.breakdown import sentence
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.categories import INKS
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns

_FONT = "13px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif"
_DISPLAY = {"div": "block", "span": "inline", "b": "inline", "table": "table", "tr": "table-row"}
_DIM = "opacity:.65"
_BOLD = "font-weight:600"
_BAR_WIDTH = 1_000
_BAR_HEIGHT = 14
_MOST_PARTS = 3


def breakdown_html(breakdown: Breakdown) -> str:
    """A budget."""
    wall = breakdown.wall
    rows = [
        [
            _name(category.category, " (trace)" if category.evidence == "trace" else ""),
            f"{category.share:.1%}",
            format_ns(category.ns),
            interval_text(category.ci95_ns),
            _tag("span", _DIM, escape(_within(category))),
        ]
        for category in breakdown.host
        if category.ns
    ]
    total = ["sum = wall", "100 %", format_ns(wall.ns), bounds_cell(wall), ""]
    return _root(
        _headline(call_title(breakdown), f"{format_ns(wall.ns)} per call", bounds_text(wall)),
        _bar(breakdown, wall.ns),
        _table(("where", "share", "per call", "95 % interval", ""), [*rows, total]),
        _sentence(sentence(breakdown)),
        *_warnings(breakdown.warnings),
    )


def _root(*blocks: str) -> str:
    style = f"all:initial;display:block;color:inherit;font:{_FONT};font-variant-numeric:tabular-nums;max-width:60em;margin:4px 0"
    return f'<div style="{style}">{"".join(blocks)}</div>'


def _tag(name: str, style: str, content: str) -> str:
    """An element on which no style sheet of the page has a say."""
    display = _DISPLAY.get(name, "table-cell")
    return f'<{name} style="all:unset;display:{display};{style}">{content}</{name}>'


def _headline(title: str, figure: str, interval: str) -> str:
    found = f"{_tag('b', _BOLD, escape(title))} &#160; {_tag('b', _BOLD, escape(figure))} "
    return _tag("div", "margin-bottom:4px", found + _tag("span", _DIM, f"[{escape(interval)}]"))


def _bar(breakdown: Breakdown, whole_ns: int) -> str:
    """The categories side by side, a stripe of ``whole_ns`` being the full width."""
    stripes, left = [], 0.0
    for category in breakdown.host:
        width = _BAR_WIDTH * category.ns / max(whole_ns, 1)
        if category.ns:
            title = escape(f"{category.category} {format_ns(category.ns)} ({category.share:.1%})")
            stripes.append(
                f'<rect x="{left:.1f}" y="0" width="{width:.1f}" height="{_BAR_HEIGHT}" '
                f'style="fill:{INKS[category.category]}"><title>{title}</title></rect>'
            )
        left += width
    box = f'viewBox="0 0 {_BAR_WIDTH} {_BAR_HEIGHT}" preserveAspectRatio="none" role="img"'
    style = f"all:unset;display:block;width:100%;height:{_BAR_HEIGHT}px;margin:2px 0"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} style="{style}">{"".join(stripes)}</svg>'


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells of HTML: the first column and those of words left-aligned; the last row is the sum."""
    *body, total = rows
    lines = [_row("th", names, _DIM), *(_row("td", row, "") for row in body), _row("td", total, _BOLD)]
    return _tag("table", "border-collapse:collapse;margin:4px 0", "".join(lines))


def _row(cell: str, values: Sequence[str], style: str) -> str:
    last = len(values) - 1
    cells = [
        _tag(
            cell,
            f"padding:0 16px 0 0;white-space:nowrap;text-align:{'left' if at in (0, last) else 'right'};{style}",
            value,
        )
        for at, value in enumerate(values)
    ]
    return _tag("tr", "", "".join(cells))


def _name(category: str, mark: str = "") -> str:
    swatch = f"display:inline-block;width:.7em;height:.7em;margin-right:.5em;background:{INKS[category]}"
    return f"{_tag('span', swatch, '')}{escape(category + mark)}"


def _within(category: HostCategory) -> str:
    """The largest parts of a category; its largest frame where it has none."""
    parts = sorted((part for part in category.parts if part.ns), key=lambda part: -part.ns)[:_MOST_PARTS]
    named = [(part.name, part.ns) for part in parts] or [(frame.frame, frame.ns) for frame in category.top[:1]]
    return ", ".join(f"{cut(plain(name))} {format_ns(ns)}" for name, ns in named)


def _sentence(text: str) -> str:
    return _tag("div", _BOLD, escape(plain(text)))


def _warnings(warnings: Sequence[str]) -> Iterable[str]:
    return (_tag("div", _DIM, f"[{number}] {escape(plain(text))}") for number, text in enumerate(warnings, 1))
