"""Trace: torch.profiler around the measured loop, in a process that is not timed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import Struct

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import KINETO
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import SideBySide, Stages, Turn, When
from overhead_lens.machine.cores import confine_others, put_back
from overhead_lens.machine.operations import Operation

if TYPE_CHECKING:
    import pandas as pd


class Traced(Struct, frozen=True):
    """Properties of a recorded trace.

    Attributes:
        reason: Why there is none; None where there is one.
        traced_wall_ns, bare_wall_ns: Wall time of ``calls`` calls, recorded and not, in the same process.
        fault_ns: Time of a page fault.
        stack_calls: Calls of the second trace, which has Python stacks.
        operator_floor_ns: Span of an operator on one element: the most that is not its kernel.
    """

    reason: str | None = None
    calls: int = 1
    traced_wall_ns: int = 0
    bare_wall_ns: int = 0
    traced_faults: int = 0
    bare_faults: int = 0
    fault_ns: float = 0.0
    events: int = 0
    stack_calls: int = 0
    operator_floor_ns: float = 0.0


RECORD = Operation("instruments.trace.worker:record_trace", Traced)


class RecordTrace(SideBySide):
    """Records the trace, whose files the worker writes; its outcome is None until then."""

    name = "trace"
    when = When.RECORDED
    note: Traced | None = None

    def stages(self, turn: Turn, core: int | None = None) -> Stages:
        """Record it on a core; see ``SideBySide``. Not of cold calls: it would hold what displaces the caches between them."""
        if turn.request.displaced_bytes is not None:
            return
        worker = turn.present_worker
        with ExitStack() as stack:
            if core is not None:
                stack.callback(put_back, worker.pid, confine_others(worker.pid, core))
            worker.send(RECORD, folder=str(turn.recording.folder), budget_ns=turn.request.effort.clock_budget_ns)
            yield
            yield  # It ends by itself.
            try:
                self.note = worker.receive(RECORD)
            except MeasurementError as error:
                self.note = Traced(reason=str(error))
                turn.warn("no trace", error)


@dataclass(frozen=True, slots=True)
class TraceNote:
    """Event frame of ``readers/kineto`` of the plain trace, and how it was recorded."""

    events: pd.DataFrame
    about: Traced


def read_trace(capture: Capture) -> TraceNote | None:
    """The plain trace; None if none was recorded.

    Raises:
        UsageError: It, or ``meta.json``, is damaged.
    """
    from overhead_lens.readers.kineto.read import read_trace as read_kineto

    about = capture.note("trace", Traced)
    path = capture.existing(KINETO)
    if path is None or about is None or about.reason:
        return None
    return TraceNote(read_kineto(path).events, about)
