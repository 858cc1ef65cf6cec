"""What a page shows, to be asserted: its charts, tables and words by section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from overhead_lens.report import outline
from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text
from tests.drawn.stacks import CLASSIFIER

EVIL = (
    "<script>window.hit=1</script><img src=x onerror='window.hit=1'><a href='javascript:window.hit=1'>b</a></script>"
    "<b>%{customdata}</b>${window.hit=1}\x1b[31m\u202egnp.exe\u2028\x00\"'&amp;"
)


Report = Page | outline.Outline


def section(page: Report, heading: str) -> Section | outline.Section:
    (found,) = [each for each in page.sections if each.heading == heading]
    return found


def headings(page: Report) -> list[str]:
    return [each.heading for each in page.sections]


def blocks(page: Report, heading: str) -> Iterator[Block | outline.Block]:
    """What stands below a heading; what is drawn only for a page is drawn."""
    for block in section(page, heading).blocks:
        if isinstance(block, outline.Drawing):
            yield from block.draw(CLASSIFIER)
        else:
            yield block


def charts(page: Report, heading: str) -> list[Chart]:
    return [block for block in blocks(page, heading) if isinstance(block, Chart)]


def tables(page: Page, heading: str) -> list[Table]:
    return [block for block in blocks(page, heading) if isinstance(block, Table)]


def rows(page: outline.Outline, heading: str) -> list[list[list[str]]]:
    """The texts of every table below a heading, heads first, columns without any text left out."""
    found = []
    for block in blocks(page, heading):
        if isinstance(block, outline.Table):
            shown = block.shown(whole=True)
            cells = [[cell.text for cell in row.cells] for row in shown.rows]
            said = [at for at in range(len(shown.columns)) if any(row[at] for row in cells)]
            found.append([[each[at] for at in said] for each in ([column.name for column in shown.columns], *cells)])
    return found


def words(page: Report, heading: str) -> list[str]:
    return [
        text
        for block in blocks(page, heading)
        if isinstance(block, (Text, outline.Notes))
        for text in (block.paragraphs if isinstance(block, Text) else block.lines)
    ]


def traces(chart: Chart) -> dict[str, dict[str, Any]]:
    """Those that have a name, by it."""
    return {trace["name"]: trace for trace in chart.figure["data"] if "name" in trace}


def notes(chart: Chart) -> list[str]:
    return [note["text"] for note in chart.figure["layout"].get("annotations", [])]


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
