"""A budget that is shown while more processes measure, and what may end that early: narrow intervals, or Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Event

from overhead_lens.errors import EndedEarly, Interrupted, MeasurementError
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.terminal.arguments import percent
from overhead_lens.terminal.interrupt import listen
from overhead_lens.terminal.progress import Screen

MOST_PROCESSES = 25
LEAST_PROCESSES = 3
# The fewer looks, the less often intervals are narrow by chance.
LOOKS_EVERY = 2

# What a capture, its budget, its picture and its report need, with what those import only when they come to it.
NEEDED = (
    "overhead_lens.stored",
    "overhead_lens.export.capture",
    "overhead_lens.report.outlines.breakdown",
    "overhead_lens.report.printers.terminal",
    "overhead_lens.terminal.output",
    "pyarrow.parquet",
    "scipy.optimize",
)


@dataclass(slots=True)
class Refining:
    """Shows the budget after each timed process; says when intervals are as narrow as ``until_share``, never if that is None."""

    most: int
    classifier: Classifier
    screen: Screen
    until_share: float | None = None
    _looked_at: int = 0

    def prepare(self) -> None:
        """Import what makes budgets, the last one included."""
        for name in NEEDED:
            import_module(name)

    def so_far(self, capture: Callable[[], Path], processes: int) -> str:
        """Show what there is; why it is enough, or empty."""
        from rich.console import Group
        from rich.text import Text

        from overhead_lens.report.outlines.breakdown import breakdown_outline
        from overhead_lens.report.printers.terminal import Screen
        from overhead_lens.stored import budget_of

        looks = self._looks(processes)
        if not looks and (processes == self.most or not self.screen.shows):
            return ""
        try:
            breakdown = budget_of(capture(), self.classifier).breakdown
        except MeasurementError:
            # Too little for a budget yet.
            return ""
        of = f"{processes} of {'at most ' if self.until_share else ''}{self.most} processes"
        state = (
            "how processes differ is not in the intervals yet"
            if processes == 1
            else "further ones narrow the intervals"
        )
        remark = Text(f"{of}; {state}. Ctrl-C ends with what there is", style="dim")
        self.screen.show(Group(Screen(breakdown_outline(breakdown), report=False), remark))
        return self._verdict(breakdown.precision_share, processes) if looks else ""

    def _looks(self, processes: int) -> bool:
        """Whether the widths are compared with what is enough."""
        of_turn = processes >= max(LEAST_PROCESSES, self._looked_at + LOOKS_EVERY)
        looks = self.until_share is not None and (of_turn or processes == self.most)
        self._looked_at = processes if looks else self._looked_at
        return looks

    def _verdict(self, precision_share: float, processes: int) -> str:
        assert self.until_share is not None
        asked = f"--until {percent(self.until_share)}"
        if precision_share <= self.until_share:
            return f"{asked} was reached with {processes} processes: {precision_share:.2%}"
        if processes == self.most:
            return f"{asked} was not reached: {precision_share:.2%} after {processes} processes, the most"
        return ""


@contextmanager
def ending_early() -> Iterator[Event]:
    """An event that is set by Ctrl-C, which raises ``Interrupted`` as well: ``EndedEarly`` the first time."""
    pressed = Event()

    def press(_number: int) -> None:
        if pressed.is_set():
            # Whoever presses on must not break what is being put away.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            raise Interrupted
        pressed.set()
        raise EndedEarly

    before = signal.getsignal(signal.SIGINT)
    handler = listen(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        if signal.getsignal(signal.SIGINT) is handler:
            signal.signal(signal.SIGINT, before)
