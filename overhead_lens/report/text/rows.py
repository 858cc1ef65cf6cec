"""Rows of a query on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.report.text.plain import plain


def print_rows(console: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; columns of numbers are right-aligned."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for at, name in enumerate(columns):
        right = all(isinstance(row[at], (int, float, type(None))) for row in rows)
        table.add_column(Text(plain(name)), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if value is None else plain(str(value))) for value in row))
    console.print(table)
