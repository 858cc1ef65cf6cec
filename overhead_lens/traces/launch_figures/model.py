"""Launch figures by their published definitions, as values whose constructors check that they close. Durations are integer ns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from overhead_lens.errors import require

Bound = Literal["device", "host", "neither"]


@dataclass(frozen=True, slots=True)
class LaunchFigures:
    """Kernels of a device over an interval, and the cost of launching them.

    A kernel belongs to where its launching call began; one whose call is not in the trace to where it started itself.

    Attributes:
        kernels: Computing and communicating ones, those of graphs among them; no copies.
        unlinked: Of these, without their call in the trace: they have no part in ``tklqt_ns``.
        kernel_ns: Sum of their durations.
        launches: Terms of ``tklqt_ns``: a kernel launched by itself, or a graph by its first kernel.
        graph_launches, graph_kernels: Of these, launches of graphs, and kernels that they started.
        tklqt_ns: Sum over launches of the time from the start of the call to the start of the kernel (Total Kernel Launch and
            Queuing Time, Vellaisamy et al., arXiv 2504.11750); the next three sum to it.
        floor_ns: The device's floor times the number of launches; 0 if unknown.
        queued_ns: Beyond the floor, while the device was busy.
        above_ns: The rest.
        bound: ``device``: busy for nine tenths of the time; ``host``: else, and the host is blamed for most of the idle time;
            ``neither``; None without device work.
    """

    kernels: int
    unlinked: int
    kernel_ns: int
    launches: int
    graph_launches: int
    graph_kernels: int
    tklqt_ns: int
    floor_ns: int
    queued_ns: int
    above_ns: int
    bound: Bound | None

    def __post_init__(self) -> None:
        require(min(self.floor_ns, self.queued_ns, self.above_ns) >= 0, "a part of the launch time is negative")
        parts = self.floor_ns + self.queued_ns + self.above_ns
        require(parts == self.tklqt_ns, "floor, queue and the rest do not sum to the launch time")
        require(
            self.unlinked + self.launches - self.graph_launches + self.graph_kernels == self.kernels, "kernels are lost"
        )


@dataclass(frozen=True, slots=True)
class StepFigures:
    """The figures of one ``ProfilerStep#N``."""

    step: int
    figures: LaunchFigures


@dataclass(frozen=True, slots=True)
class DeviceLaunches:
    """The launch figures of one device.

    Attributes:
        device: Its number as text.
        least_ns: The shortest time from a call to its kernel: the floor, as far as this trace shows it. None where unknown.
        least_unknown: Why it is unknown; empty if it is known.
        repaired: Kernels that start before their call (clock skew): they count as started at once.
        whole: Over the whole recording.
        steps: Step by step.
        kernels_per_step: Median over the steps; None without any.
        kernels_per_token: Kernels of a step of decoding; None if the trace does not say that its steps are tokens.
        decode_steps: Steps of decoding that the trace names.
    """

    device: str
    least_ns: int | None
    least_unknown: str
    repaired: int
    whole: LaunchFigures
    steps: tuple[StepFigures, ...]
    kernels_per_step: float | None
    kernels_per_token: float | None
    decode_steps: int

    def __post_init__(self) -> None:
        require((self.least_ns is None) == bool(self.least_unknown), "the floor is neither known nor unknown")


@dataclass(frozen=True, slots=True)
class InputBatch:
    """The batch size that the recorded shapes of a trace's first layer say.

    Attributes:
        size: Leading dimension of its input; None if unknown.
        told_by: The operator and the shape of its input, or why it is unknown.
    """

    size: int | None
    told_by: str
