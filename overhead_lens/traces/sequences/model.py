"""Sequences of launches and operators that repeat, as values whose constructors check them. Durations are integer ns."""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.errors import require

LAUNCHES, OPERATORS = "launches", "operators"


@dataclass(frozen=True, slots=True)
class RepeatedSequence:
    """Names that follow one another in the same order several times, on one stream or thread each time.

    The upper bound of what joining or capturing it would save is given twice. The two must not be added: calls of launches on the
    host run beside the gaps on a device.

    Attributes:
        kind: ``launches`` of device work, or ``operators`` of a host thread that no other operator is around.
        lane: Stream or thread of the first occurrence: ``device 0 stream 7`` or ``thread 123``.
        lanes: Number of streams or threads.
        names: The first of its names.
        length: Number of names.
        count: Number of occurrences, without overlap.
        start_ns: Start of the first occurrence.
        busy_ns: Total duration of its device events or operators.
        launch_ns: Time of its launching calls without their waits for the device, and without the shortest of each occurrence.
        gap_ns: Time between its device events or operators; none between two events of one graph.
        idle_ns: For device events, the part of the gaps in which the whole device was idle, once for all streams; else all gaps.
        in_graph: Number of its device events that a graph launched.
        operator, module, line: Around the launch of its first event; empty if the trace does not show it.
    """

    kind: str
    lane: str
    lanes: int
    names: tuple[str, ...]
    length: int
    count: int
    start_ns: int
    busy_ns: int
    launch_ns: int
    gap_ns: int
    idle_ns: int
    in_graph: int
    operator: str
    module: str
    line: str

    @property
    def saved_ns(self) -> int:
        """The larger of both bounds, by which sequences are ranked."""
        return max(self.launch_ns, self.idle_ns)

    def __post_init__(self) -> None:
        require(min(self.length, self.count) > 1, "a sequence of one name, or one that does not repeat")
        require(min(self.busy_ns, self.launch_ns) >= 0, "a sequence takes less than no time")
        require(0 <= self.idle_ns <= self.gap_ns, "more of the gaps is idle than there is")
        require(0 <= self.in_graph <= self.length * self.count, "more events of graphs than events")
