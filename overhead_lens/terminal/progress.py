"""Progress on stderr: a line when it begins, then, on a terminal, a bar and above it the result so far."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import RenderableType


class Screen:
    """A listener that can also show preliminary results, if anybody sees it (``shows``); this one says nothing."""

    shows = False

    def begin(self, steps: int) -> None:
        """``steps`` steps will follow."""

    def step(self, text: str) -> None:
        """The next step, in words."""

    def show(self, result: RenderableType) -> None:
        """Show it in place of the one before."""


SILENT = Screen()

_MINUTES_FROM_S = 100


def announcement(subject: str, seconds: float | None = None) -> str:
    """``measuring add1, about 30 s``; without a time where none is known."""
    if seconds is None:
        return f"measuring {subject}"
    time = f"{seconds:.0f} s" if seconds < _MINUTES_FROM_S else f"{seconds / 60:.0f} min"
    return f"measuring {subject}, about {time}"


@contextmanager
def progress(*, quiet: bool, begins: str = "") -> Iterator[Screen]:
    """A listener that draws a bar while the block runs; ``begins`` is printed at once, also where stderr is a file or a pipe."""
    if begins and not quiet:
        print(begins, file=sys.stderr, flush=True)
    if quiet or not sys.stderr.isatty():
        yield SILENT
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True, highlight=False, markup=False, emoji=False, force_jupyter=False)
    bar = Progress(*columns, console=console, expand=True)
    task = bar.add_task("starting", total=None)
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:

        class Drawn(Screen):
            # A terminal that cannot go back would show one result below the other.
            shows = not console.is_dumb_terminal

            def begin(self, steps: int) -> None:
                bar.update(task, total=steps)

            def step(self, text: str) -> None:
                # A step is announced before it runs: the bar counts those that are over.
                bar.update(task, description=text, advance=0 if bar.tasks[0].description == "starting" else 1)

            def show(self, result: RenderableType) -> None:
                live.update(Group(result, "", bar), refresh=True)

        yield Drawn()
