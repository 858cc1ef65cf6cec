"""What a page shows, to be asserted: its charts, tables and words by section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from overhead_lens.report.outline import Block, Drawing, Notes, Outline, Picture, Section, Table
from overhead_lens.report.page.model import Icicle, Plot, Series
from tests.drawn.stacks import CLASSIFIER

EVIL = (
    "<script>window.hit=1</script><img src=x onerror='window.hit=1'><a href='javascript:window.hit=1'>b</a></script>"
    "<b>%{customdata}</b>${window.hit=1}\x1b[31m\u202egnp.exe\u2028\x00\"'&amp;"
)


def section(page: Outline, heading: str) -> Section:
    (found,) = [each for each in page.sections if each.heading == heading]
    return found


def headings(page: Outline) -> list[str]:
    return [each.heading for each in page.sections]


def blocks(page: Outline, heading: str) -> Iterator[Block | Picture]:
    """What stands below a heading; what is drawn only for a page is drawn."""
    for block in section(page, heading).blocks:
        if isinstance(block, Drawing):
            yield from block.draw(CLASSIFIER)
        else:
            yield block


def plots(page: Outline, heading: str) -> list[Plot]:
    return [block for block in blocks(page, heading) if isinstance(block, Plot)]


def icicles(page: Outline, heading: str) -> list[Icicle]:
    return [block for block in blocks(page, heading) if isinstance(block, Icicle)]


def rows(page: Outline, heading: str) -> list[list[list[str]]]:
    """The texts of every table below a heading, heads first, columns without any text left out."""
    found = []
    for block in blocks(page, heading):
        if isinstance(block, Table):
            shown = block.shown(whole=True)
            cells = [[cell.text for cell in row.cells] for row in shown.rows]
            said = [at for at in range(len(shown.columns)) if any(row[at] for row in cells)]
            found.append([[each[at] for at in said] for each in ([column.name for column in shown.columns], *cells)])
    return found


def words(page: Outline, heading: str) -> list[str]:
    return [text for block in blocks(page, heading) if isinstance(block, Notes) for text in block.lines]


def series(plot: Plot) -> dict[str, Series]:
    """Those that have a name, by it."""
    return {each.name: each for each in plot.series if each.name}


def notes(plot: Plot) -> list[str]:
    return [note.text for note in plot.notes]


def strings(value: Any) -> Iterator[str]:
    """Every text inside a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from strings(item)
