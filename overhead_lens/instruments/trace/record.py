"""Trace: torch.profiler around the measured loop, in a process that is not timed."""

from __future__ import annotations

from contextlib import ExitStack

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import Begun, SideBySide, Turn, When
from overhead_lens.instruments.trace.evidence import Traced
from overhead_lens.machine.cores import confine_others, put_back
from overhead_lens.machine.operations import Operation

RECORD = Operation("instruments.trace.worker:record_trace", Traced)


class Tracing:
    """A trace that is being recorded."""

    def __init__(self, instrument: RecordTrace, turn: Turn) -> None:
        self._instrument, self._turn = instrument, turn

    def end(self) -> None:
        """Do nothing: a trace ends by itself."""

    def keep(self) -> None:
        """Keep how it was recorded."""
        try:
            self._instrument.note = self._turn.present_worker.receive(RECORD)
        except MeasurementError as error:
            self._instrument.note = Traced(reason=str(error))
            self._turn.warn("no trace", error)


class RecordTrace(SideBySide):
    """Records the trace, whose files the worker writes; its outcome is None until then."""

    name = "trace"
    when = When.RECORDED
    note: Traced | None = None

    def begin(self, stack: ExitStack, turn: Turn, core: int | None = None) -> Begun | None:
        """Record it on a core; see ``SideBySide``. Not of cold calls: it would hold what displaces the caches between them."""
        if turn.request.displaced_bytes is not None:
            return None
        worker = turn.present_worker
        if core is not None:
            stack.callback(put_back, worker.pid, confine_others(worker.pid, core))
        worker.send(RECORD, folder=str(turn.recording.folder), budget_ns=turn.request.effort.clock_budget_ns)
        return Tracing(self, turn)
