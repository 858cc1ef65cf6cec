"""Progress on stderr: a bar on a terminal, nothing where stderr is a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from overhead_lens.machine.request import Listener


class _Silent:
    """A listener that says nothing."""

    def begin(self, steps: int) -> None:
        """Say nothing."""

    def step(self, text: str) -> None:
        """Say nothing."""


SILENT = _Silent()


@contextmanager
def progress(*, quiet: bool) -> Iterator[Listener]:
    """A listener that draws a bar while the block runs."""
    if quiet or not sys.stderr.isatty():
        yield SILENT
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        class Drawn:
            def begin(self, steps: int) -> None:
                bar.update(task, total=steps)

            def step(self, text: str) -> None:
                # A step is announced before it runs: the bar counts those that are over.
                bar.update(task, description=text, advance=0 if bar.tasks[0].description == "starting" else 1)

        yield Drawn()
