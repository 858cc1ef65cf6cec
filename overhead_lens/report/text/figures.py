"""Tables of figures that a narrow terminal does not cut: a figure without its last digits is another figure.

Where a table is too wide, names are folded; then the bars are left out; then every row becomes lines of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from overhead_lens.report.text.plain import plain

_LEAST_NAME = 18
_WIDE = 10_000


class Figures(Table):
    """A table without lines; columns with ``no_wrap`` are never wrapped."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The widest form that fits."""
        room = options.max_width
        if self._least(console, self.columns) <= room:
            yield from super().__rich_console__(console, options)
            return
        bare = [column for column in self.columns if column.width is None]
        if len(bare) < len(self.columns) and self._least(console, bare) <= room:
            yield self._of(bare)
            return
        yield from self._lines(bare)

    def _least(self, console: Console, columns: Collection[Column]) -> int:
        """The width below which a figure would be cut."""
        return sum(self._width(console, column) for column in columns) + self.padding[1] * max(0, len(columns) - 1)

    def _width(self, console: Console, column: Column) -> int:
        if column.width is not None:
            return column.width
        wide = console.options.update(max_width=_WIDE)
        cells = [column.header, *column.cells] if self.show_header else list(column.cells)
        natural = max((console.measure(cell, options=wide).maximum for cell in cells), default=0)
        return natural if column.no_wrap and column.overflow != "ellipsis" else min(natural, _LEAST_NAME)

    def _of(self, columns: Collection[Column]) -> Figures:
        """The table with a selection of its columns."""
        table = Figures(
            box=None, pad_edge=False, header_style="dim", show_header=self.show_header, padding=self.padding
        )
        for column in columns:
            table.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap, overflow=column.overflow)
        for row in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*row)
        return table

    def _lines(self, columns: Collection[Column]) -> Iterator[RenderableType]:
        """Each row as lines: its first cell, then every other one with the column's name."""
        heads = [column.header if self.show_header else "" for column in columns]
        for first, *others in zip(*(column.cells for column in columns), strict=True):
            yield first if isinstance(first, Text) else Text(str(first))
            for head, cell in zip(heads[1:], others, strict=True):
                if value := cell if isinstance(cell, Text) else Text(str(cell)):
                    yield Text.assemble("  ", (f"{head} " if str(head) else "", "dim"), value)


def figures(*names: str, left: Collection[str] = (), folded: Collection[str] | None = None, **options: Any) -> Figures:
    """A table of figures: columns in ``left`` are left-aligned, ``folded`` ones fold, by default left ones without intervals."""
    folding = [name for name in left if "interval" not in name] if folded is None else folded
    table = Figures(box=None, pad_edge=False, header_style="dim", **options)
    for name in names:
        table.add_column(
            Text(plain(name)), justify="left" if name in left else "right", no_wrap=name not in folding, overflow="fold"
        )
    return table


def plain_figures() -> Figures:
    """A table of figures without names of columns, for its rows to be read as lines."""
    return Figures(box=None, pad_edge=False, show_header=False)
