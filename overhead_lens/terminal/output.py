"""Printing a result, or the rows of a query, on stdout in the format that was asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from overhead_lens.errors import MeasurementError, OverheadLensError, UsageError
from overhead_lens.export.output import replacing
from overhead_lens.report.forms import print_text, to_html, to_json
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.classifier import Classifier

# Wide enough for the tables where stdout is a file or a pipe and has no width of its own.
_FILE_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Format:
    """How a result is shown: as ``json``, one document and nothing else on stdout, or as text, ``whole`` or without some parts.

    Its HTML is written to the file ``page`` as well, drawn by the ``classifier`` that was used; None for the built-in one.
    """

    json: bool = False
    page: Path | None = None
    classifier: Classifier | None = None
    whole: bool = False
    force: bool = False


def show(result: object, form: Format) -> None:
    """Print a result of a type that ``report/forms.py`` knows, and write its page if requested.

    Raises:
        UsageError: The page's file exists or cannot be written; the result was printed.
    """
    if form.json:
        print(to_json(result))
    else:
        print_text(make_console(), result, whole=form.whole)
    if form.page is not None:
        write_text(form.page, to_html(result, form.classifier), force=form.force)


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a file, whole or not at all; over an existing one only with ``force``.

    Raises:
        UsageError: It exists, or cannot be written.
    """
    content = text.encode(errors="backslashreplace")
    if force:
        with replacing(path) as file:
            file.write(content)
        return
    try:
        with path.open("xb") as file:
            try:
                file.write(content)
                file.flush()
            except BaseException:
                path.unlink()
                raise
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def append_markdown(path: Path | None, text: str) -> None:
    """Append Markdown to a file, as the summary of a CI job is; nothing without a path.

    Raises:
        UsageError: It cannot be written.
    """
    if path is None:
        return
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def print_result(result: object, file: IO[str] | None = None) -> None:
    """Print a result for people on stdout, or into another stream or a file."""
    print_text(make_console(file), result)


def show_rows(rows: object, form: Format, text: Callable[[Console], None]) -> None:
    """Print plain JSON values that no schema fixes, or what ``text`` prints of them."""
    if form.json:
        print(json.dumps(rows, indent=1))
    else:
        text(make_console())


def show_drawn(result: object, form: Format, draw: Callable[[], object], what: str) -> None:
    """Draw a picture of the result and print the result, even where the picture fails.

    Raises:
        MeasurementError: The picture failed; the result was printed.
    """
    failure = None
    try:
        draw()
    except OverheadLensError as error:
        failure = error
    show(result, form)
    if failure is not None:
        raise MeasurementError(f"{failure}; the {what} is complete but for this picture") from failure


def make_console(file: IO[str] | None = None) -> Console:
    """A console on stdout, or on another stream or a file, that invents no markup in names and no width for a file."""
    width = None if (file or sys.stdout).isatty() else _FILE_WIDTH
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False, force_jupyter=False)


def print_rows(console: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table; columns of numbers are right-aligned."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for at, name in enumerate(columns):
        right = all(isinstance(row[at], (int, float, type(None))) for row in rows)
        table.add_column(Text(plain(name)), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if value is None else plain(str(value))) for value in row))
    console.print(table)
