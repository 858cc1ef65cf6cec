"""Trace: torch.profiler around the measured loop, in a process that is not timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import Turn, When
from overhead_lens.instruments.trace.evidence import Traced
from overhead_lens.machine.operations import Operation

RECORD = Operation("instruments.trace.worker:record_trace", Traced)


class RecordTrace:
    """How the trace was recorded; None until it was tried."""

    name: ClassVar[str] = "trace"
    when: ClassVar[When] = When.TRACED

    def __init__(self) -> None:
        self.about: Traced | None = None

    def measure(self, turn: Turn) -> None:
        """Record it; the worker writes the files. Not of cold calls: it would hold what displaces the caches between them."""
        if turn.request.displaced_bytes is not None:
            return
        try:
            self.about = turn.asked.ask(RECORD, folder=str(turn.recording.folder))
        except MeasurementError as error:
            self.about = Traced(reason=str(error))
            turn.warn("no trace", error)

    def write(self, _folder: Path) -> Any:
        """How it was recorded."""
        return self.about
