"""What a page shows, to be asserted: its charts, tables and words by section."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from overhead_lens.report.page.model import Block, Chart, Page, Section, Table, Text

EVIL = (
    "<script>window.hit=1</script><img src=x onerror='window.hit=1'><a href='javascript:window.hit=1'>b</a></script>"
    "<b>%{customdata}</b>${window.hit=1}\x1b[31m\u202egnp.exe\u2028\x00\"'&amp;"
)


def section(page: Page, heading: str) -> Section:
    (found,) = [each for each in page.sections if each.heading == heading]
    return found


def headings(page: Page) -> list[str]:
    return [each.heading for each in page.sections]


def charts(page: Page, heading: str) -> list[Chart]:
    return [block for block in section(page, heading).blocks if isinstance(block, Chart)]


def tables(page: Page, heading: str) -> list[Table]:
    return [block for block in section(page, heading).blocks if isinstance(block, Table)]


def words(page: Page, heading: str) -> list[str]:
    return [text for block in section(page, heading).blocks if isinstance(block, Text) for text in block.paragraphs]


def blocks(page: Page) -> list[Block]:
    return [block for each in page.sections for block in each.blocks]


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
