"""The critical path of a recorded window: the chain of work that decides how long it takes. Durations are integer ns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from overhead_lens.contract import derive
from overhead_lens.errors import require
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.traces.columns import Columns
from overhead_lens.traces.device import KINDS as DEVICE_KINDS

LATENCY, GAP, QUEUE, UNEXPLAINED = "launch_latency", "device_gap", "queue", "unexplained"

KINDS = (*HOST_CATEGORIES, *DEVICE_KINDS, LATENCY, GAP, QUEUE, UNEXPLAINED)
"""What a part of a path is.

- a host category: work of a thread;
- ``compute``, ``communication``, ``copy``: an event of a device;
- ``launch_latency``: from a launch to the start on a device that was free, as far as it is usual in this trace;
- ``device_gap``: from the end of what a device event had to wait for to its start, as far as it is usual in this trace;
- ``queue``: the rest until the start: launched, and nothing in the trace says what it waited for;
- ``unexplained``: nothing that was recorded in this interval is known to lead to what follows.
"""

PART_COLUMNS: Columns = {
    **dict.fromkeys(("step", "start_ns", "dur_ns"), int),
    **dict.fromkeys(("lane", "kind", "name", "operator", "module", "reached_by"), str),
}
"""Columns of the frame of all parts: ``step`` is -1 where there are no steps."""


@dataclass(frozen=True, slots=True)
class Share:
    """One kind, operator, kernel or module on the path.

    Attributes:
        name: As the trace spells it; of a kind one of ``KINDS``.
        ns: Its time on the path.
        total_ns: Its time in the window, also beside the path, of all its threads and streams together; what is lost between
            events is known on the path only.
        if_free_ns: What the window would take if all of it took no time; None if that was not evaluated.
    """

    name: str
    ns: int
    total_ns: int
    if_free_ns: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.ns <= self.total_ns, f"{self.name} is longer on the path than in the window")


@dataclass(frozen=True, slots=True)
class Slack:
    """Device events of one name: by how much those beside the path could at most be longer without making the path longer.

    Attributes:
        count: Those beside the path that end in the window.
        on_path: Further ones, on the path.
        least_ns, total_ns: Of the slacks of the ``count`` events; 0 if there are none.
    """

    kernel: str
    device: str
    count: int
    on_path: int
    least_ns: int
    total_ns: int

    def __post_init__(self) -> None:
        require(0 <= self.least_ns * self.count <= self.total_ns, f"the slack of {self.kernel} is negative")


@dataclass(frozen=True, slots=True)
class WindowPath:
    """The critical path of a step, or of the window if ``step`` is null; ``kinds`` sum to it, ns."""

    step: int | None
    start_ns: int
    wall_ns: int
    length_ns: int = field(
        init=False
    )  # The part of the window that recorded work and known delays on the path explain.
    unexplained_ns: int = field(init=False)
    kinds: tuple[Share, ...]  # All of ``KINDS`` that took time in the window, in that order.
    # The costliest of all windows by their own host time, the calls in it and the device work that these launched.
    operators: tuple[Share, ...]
    kernels: tuple[Share, ...]  # The costliest device events of all windows by name.
    # Innermost ``nn.Module`` of the host's pieces, and of the launch of device events: most time on the paths of all windows.
    modules: tuple[Share, ...]
    slack: tuple[Slack, ...]  # Device events by name and device, the least slack first; those on the path only last.
    assumed: Mapping[str, int]  # Steps of the path that rest on an assumption, by its name; no zeros.

    def __post_init__(self) -> None:
        require(sum(kind.ns for kind in self.kinds) == self.wall_ns, "the parts of a path do not sum to its window")
        unexplained_ns = sum(kind.ns for kind in self.kinds if kind.name == UNEXPLAINED)
        derive(self, unexplained_ns=unexplained_ns, length_ns=self.wall_ns - unexplained_ns)


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Critical paths; ``edges`` are dependencies by kind, ``broken`` those that contradict the clocks and were left out."""

    windows: tuple[WindowPath, ...]  # One for each step, or one of the whole window where there are no steps.
    edges: Mapping[str, int]
    broken: Mapping[str, int]
    assumptions: tuple[str, ...]  # What the paths assume where the trace does not say, one sentence each.


@dataclass(frozen=True, slots=True)
class PathTime:
    """Time of one kind, operator, kernel or module on a path over ranks."""

    name: str
    ns: int


@dataclass(frozen=True, slots=True)
class RankOnPath:
    """One rank's part of a path over ranks.

    Attributes:
        rank: Its label.
        kinds: In the order of ``KINDS``; they sum to ``ns``.
    """

    rank: str
    ns: int
    kinds: tuple[PathTime, ...]

    def __post_init__(self) -> None:
        require(sum(kind.ns for kind in self.kinds) == self.ns, f"the parts of rank {self.rank} do not sum")


@dataclass(frozen=True, slots=True)
class StepOverRanks:
    """The critical path over ranks of one step, or of the whole windows.

    Attributes:
        step: Its number; None for the whole windows.
        last: Label of the rank that ends it last; ``start_ns`` and ``wall_ns`` are that rank's window by its own clock.
        changes: How often the path goes from one rank to another.
        ranks: Those that it leads over, most time first; they sum to the window.
        kinds: All that took time, in the order of ``KINDS``; they sum to the window.
        operators, kernels, modules: The costliest on the paths of all steps, here the most time first.
    """

    step: int | None
    last: str
    start_ns: int
    wall_ns: int
    changes: int
    ranks: tuple[RankOnPath, ...]
    kinds: tuple[PathTime, ...]
    operators: tuple[PathTime, ...]
    kernels: tuple[PathTime, ...]
    modules: tuple[PathTime, ...]

    def __post_init__(self) -> None:
        for parts in (self.ranks, self.kinds):
            require(sum(part.ns for part in parts) == self.wall_ns, "the parts of a path do not sum to its window")
        require(self.changes >= len(self.ranks) - 1, "a path leads over more ranks than it goes to")


@dataclass(frozen=True, slots=True)
class PathOverRanks:
    """The critical paths over the ranks of a job.

    Attributes:
        steps: Those that all ranks with a path have, in order.
        notes: What is assumed and what cannot be said, one sentence each.
    """

    steps: tuple[StepOverRanks, ...]
    notes: tuple[str, ...]
