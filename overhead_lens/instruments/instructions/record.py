"""Instructions: the measured loop under callgrind, in a process of its own."""

from __future__ import annotations

from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.instructions.callgrind import calls_of, count_instructions
from overhead_lens.instruments.instructions.evidence import Counted
from overhead_lens.instruments.instrument import Instrument, Turn, When

ON_A_DEVICE = "a call that gives work to a device is not counted"


class CountInstructions(Instrument):
    """The outcome of counting; None if not requested."""

    name = "instructions"
    when = When.AFTERWARDS
    note: Counted | None = None

    def measure(self, turn: Turn) -> None:
        """Count, if it was requested."""
        request, recording = turn.request, turn.recording
        if not request.instructions:
            return
        recording.listener.step("counting instructions")
        assert recording.workload is not None
        if recording.workload.device != "cpu":
            self.note = Counted(1, ON_A_DEVICE)
            return
        rows = recording.of(Clock).rows
        calls = request.counted_calls or calls_of(min(row["wall_ns"] / row["calls"] for row in rows))
        load, folder = request.load_arguments(), recording.folder
        self.note = count_instructions(load, calls, folder, request.timeout_s, request.variables)
