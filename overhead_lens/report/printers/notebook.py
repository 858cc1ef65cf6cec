"""An outline in a notebook: what stands everywhere, as one small piece of HTML.

Notebooks bring style sheets of their own. Every element drops what they say of it and styles itself; only the page's text color
is taken over, so that it is read on a dark page and on a light one.
"""

from __future__ import annotations

from overhead_lens.report.outline import Bars, Block, Card, Notes, Outline, Table
from overhead_lens.report.printers.html import bars_html, shown, table_html
from overhead_lens.report.printers.terminal import cut_middle

_FONT = "13px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif"
_ROOT = f"all:initial;display:block;color:inherit;font:{_FONT};font-variant-numeric:tabular-nums;max-width:60em;margin:4px 0"
_DIM, _BOLD = "opacity:.65", "font-weight:600"
_CELL = "display:table-cell;padding:0 16px 0 0;vertical-align:top"
_STYLES = {
    "table": "display:table;border-collapse:collapse;margin:4px 0",
    "tr": "display:table-row",
    "th": f"{_CELL};white-space:nowrap;{_DIM}",
    "td": _CELL,
    "number": "text-align:right;white-space:nowrap",
    "short": "white-space:nowrap",
    "bold": _BOLD,
    "dim": _DIM,
    "warning": "",
    "code": "font-family:ui-monospace,monospace",
    "swatch": "display:inline-block;width:.7em;height:.7em;margin-right:.5em;",
    "length": "display:block;width:9em;height:.8em;margin-top:.35em",
    "bar": "display:block;width:100%;height:14px;margin:2px 0",
    "over": "display:block",
    "name": "display:inline",
    "remark": f"display:inline;{_DIM}",
    "line": "display:block",
    "scrolled": "display:block;overflow-x:auto",
    "text": "display:inline",
}
_MOST_NAME = 64


def notebook_html(outline: Outline) -> str:
    """The element."""
    head = [_element("b", "text bold", outline.title)]
    if outline.figure:
        head += [" &#160; ", _element("span", "text", outline.figure)]
    parts = [f"<div{_attributes('line')}>{''.join(head)}</div>"]
    parts += [_element("div", "line dim", line) for line in outline.about]
    parts += [_element("div", "line bold", outline.sentence)] if outline.sentence else []
    for section in outline.sections:
        if section.reach == "everywhere":
            if outline.has_heading(section):
                parts.append(_element("div", "line dim", section.heading))
            parts += map(_block, section.blocks)
    parts += [
        _element("div", "line dim", f"[{number}] {warning}") for number, warning in enumerate(outline.warnings, 1)
    ]
    return f'<div style="{_ROOT}">{"".join(parts)}</div>'


def _block(block: Block) -> str:
    if isinstance(block, Table):
        table = block.shown(whole=False).with_texts(lambda cell: cut_middle(cell.text, _MOST_NAME))
        return f"<div{_attributes('scrolled')}>{table_html(table, _attributes)}</div>"
    if isinstance(block, Bars):
        return "".join(bars_html(block, _attributes))
    if isinstance(block, Notes):
        return "".join(_element("div", f"line {block.tone}", line) for line in block.lines)
    if isinstance(block, Card):
        return _element("div", "line", block.title) + _element("div", "line dim", f"try: {block.remedy}")
    return ""


def _element(tag: str, roles: str, text: str) -> str:
    return f"<{tag}{_attributes(roles)}>{shown(text)}</{tag}>"


def _attributes(roles: str) -> str:
    """An element on which no style sheet of the page has a say."""
    return f' style="all:unset;{";".join(filter(None, map(_STYLES.__getitem__, roles.split())))}"'
