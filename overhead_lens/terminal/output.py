"""Printing a result on stdout in the format that was asked for."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import Enum, auto
from typing import IO

from rich.console import Console

from overhead_lens.errors import MeasurementError, OverheadLensError
from overhead_lens.report.forms import print_text, to_json

# Wide enough for the tables where stdout is a file or a pipe and has no width of its own.
_FILE_WIDTH = 120


class Format(Enum):
    """How a result is printed."""

    TEXT = auto()
    """For people."""

    JSON = auto()
    """For programs: one document and nothing else on stdout."""

    @classmethod
    def asked(cls, *, json: bool) -> Format:
        """What the options of a command ask for."""
        return cls.JSON if json else cls.TEXT


def show(result: object, form: Format) -> None:
    """Print a result of a type that ``report/forms.py`` knows."""
    if form is Format.JSON:
        print(to_json(result))
    else:
        print_result(result)


def print_result(result: object) -> None:
    """Print a result for people."""
    print_text(make_console(), result)


def print_into(file: IO[str], result: object) -> None:
    """Print a result for people into a stream or file."""
    width = None if file.isatty() else _FILE_WIDTH
    print_text(Console(file=file, width=width, highlight=False, markup=False, emoji=False), result)


def show_rows(rows: object, form: Format, text: Callable[[Console], None]) -> None:
    """Print plain JSON values that no schema fixes, or what ``text`` prints of them."""
    if form is Format.JSON:
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


def make_console() -> Console:
    """A console on stdout that invents no markup in names and no width for a file."""
    width = None if sys.stdout.isatty() else _FILE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)
