"""Printing a result: JSON and nothing else on stdout, or the terminal report."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from rich.console import Console

from overhead_lens.analysis.model import Breakdown
from overhead_lens.compare.model import Delta
from overhead_lens.errors import OverheadLensError

# Wide enough for the tables where stdout is a file or a pipe and has no width of its own.
_FILE_WIDTH = 120


def show_breakdown(breakdown: Breakdown, *, as_json: bool) -> None:
    """Print a budget."""
    if as_json:
        from overhead_lens.report.json import breakdown_document

        print(json.dumps(breakdown_document(breakdown), indent=1))
        return
    from overhead_lens.report.text import print_breakdown

    print_breakdown(make_console(), breakdown)


def show_delta(delta: Delta, *, as_json: bool) -> None:
    """Print a difference."""
    if as_json:
        from overhead_lens.report.json import delta_document

        print(json.dumps(delta_document(delta), indent=1))
        return
    from overhead_lens.report.delta_text import print_delta

    print_delta(make_console(), delta)


def failure_of(draw: Callable[[], object]) -> OverheadLensError | None:
    """Draw a picture; a failure is returned, since what was measured is to be shown all the same."""
    try:
        draw()
    except OverheadLensError as error:
        return error
    return None


def make_console() -> Console:
    """A console on stdout that invents no markup in names and no width for a file."""
    width = None if sys.stdout.isatty() else _FILE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)
