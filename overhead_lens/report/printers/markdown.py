"""An outline as Markdown, for the summary of a CI job or a comment: what stands everywhere."""

from __future__ import annotations

from collections.abc import Iterator

from overhead_lens.report.outline import Block, Card, Cell, Notes, Outline, Row, Table
from overhead_lens.report.text.plain import plain


def to_markdown(outline: Outline) -> str:
    """A heading, the answer, the figure, tables, warnings."""
    lines = [f"### {escaped(outline.title)}", ""]
    lines += [f"{escaped(line)}\n" for line in (outline.sentence, outline.figure, *outline.about) if line]
    for section in outline.sections:
        if section.reach == "everywhere":
            if outline.has_heading(section):
                lines += [f"**{escaped(section.heading)}**", ""]
            lines += [line for block in section.blocks for line in _block(block)]
    lines += [f"- {escaped(warning)}" for warning in outline.warnings]
    return "\n".join(lines).rstrip() + "\n"


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block.shown(whole=False))
    elif isinstance(block, Notes):
        yield from (f"{escaped(line)}\n" for line in block.lines)
    elif isinstance(block, Card):
        yield f"- {escaped(block.title)} Try: {escaped(block.remedy)}"


def _table(table: Table) -> Iterator[str]:
    """Without bars, whose figures are in the table."""
    places = range(len(table.columns))
    table = table.columns_at([at for at in places if not any(row.cells[at].length for row in table.rows)])
    yield f"| {' | '.join(escaped(column.name) for column in table.columns)} |"
    yield f"|{''.join('---:|' if column.is_number else '---|' for column in table.columns)}"
    yield from (f"| {' | '.join(_cell(cell, row, at) for at, cell in enumerate(row.cells))} |" for row in table.rows)
    yield ""


def _cell(cell: Cell, row: Row, at: int) -> str:
    if cell.tone == "code" and cell.text:
        return f"`{plain(cell.text).replace('`', chr(39)).replace('|', chr(92) + '|')}`"
    return ("&nbsp;&nbsp;" * row.depth if at == 0 else "") + escaped(cell.text)


def escaped(text: str) -> str:
    """Text that ends no cell and starts no markup."""
    shown = plain(text)
    for mark in ("\\", "|", "<", "*", "_", "`", "["):
        shown = shown.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return shown
