"""Trace: torch.profiler around the measured loop, in a process that is not timed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import Turn, When
from overhead_lens.instruments.trace.evidence import Traced
from overhead_lens.machine.cores import put_back, set_apart
from overhead_lens.machine.operations import Operation

RECORD = Operation("instruments.trace.worker:record_trace", Traced)


class RecordTrace:
    """How the trace was recorded; None until it was tried."""

    name: ClassVar[str] = "trace"
    when: ClassVar[When] = When.RECORDED

    def __init__(self) -> None:
        self.about: Traced | None = None

    def measure(self, turn: Turn) -> None:
        """Record it; the worker writes the files."""
        with ExitStack() as stack:
            self.begin(stack, turn)()

    def begin(self, stack: ExitStack, turn: Turn, core: int | None = None) -> Callable[[], None]:
        """Record it on a core; see ``SideBySide``. Not of cold calls: it would hold what displaces the caches between them."""
        if turn.request.displaced_bytes is not None:
            return lambda: None
        worker = turn.asked
        if core is not None:
            stack.callback(put_back, worker.pid, set_apart(worker.pid, core))
        worker.send(RECORD, folder=str(turn.recording.folder), budget_ns=2 * turn.request.effort.clock_budget_ns)
        return lambda: self._keep(turn)

    def _keep(self, turn: Turn) -> None:
        try:
            self.about = turn.asked.receive(RECORD)
        except MeasurementError as error:
            self.about = Traced(reason=str(error))
            turn.warn("no trace", error)

    def write(self, _folder: Path) -> Any:
        """How it was recorded."""
        return self.about
