"""The protocol of an instrument, and the recording that it is part of.

Every instrument is a folder: ``worker.py`` runs in the measured process, ``record.py`` asks for it, writes its files and reads
them again as a typed value. A new one is a folder and a line in ``registry.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.operations import Workload
from overhead_lens.machine.process import Process
from overhead_lens.machine.request import Listener, Request


class When(Enum):
    """The process of a recording in which an instrument measures."""

    TIMED = auto()  # Every timed one, one after the other.
    SAMPLED = auto()  # Every timed one after that, as many at once as cores are idle (``SideBySide``).
    RECORDED = auto()  # The traced one, after it was sampled, while another is sampled (``SideBySide``).
    TRACED = auto()  # The traced one after that, by itself.
    CHANGED = auto()  # Every timed one after that, one after the other: the instrument changes the call.
    LAST = auto()  # The last timed one, at its end.
    AFTERWARDS = auto()  # Processes of its own, when all others have ended.


class Instrument(ABC):
    """One way of measuring a call. An instance is made for each recording and keeps what was measured.

    Attributes:
        name: Its key in ``meta.json``.
        note: Its entry there; None for nothing.
    """

    name: ClassVar[str]
    when: ClassVar[When]
    note: Any = None

    @abstractmethod
    def measure(self, turn: Turn) -> None:
        """Measure in the process whose turn it is.

        Raises:
            MeasurementError: There is no capture without this instrument; others warn (``Turn.warn``).
        """

    def write(self, folder: Path) -> Any:  # noqa: ARG002  (used by subclasses that write files)
        """Write its files; returns its note for ``meta.json``, None for nothing."""
        return self.note


Stages = Generator[None, None, None]
"""A measurement that goes on: the first stage begins it, the second waits until it has measured enough, the third stores it."""


class SideBySide(Instrument):
    """An instrument that may measure on one core while another process is measured on another."""

    def measure(self, turn: Turn) -> None:
        """Measure by itself."""
        measure_at_once([self.stages(turn)])

    @abstractmethod
    def stages(self, turn: Turn, core: int | None = None) -> Stages:
        """The stages of measuring in a process; none if there is nothing to measure.

        Args:
            core: The process's meanwhile; None where it is measured by itself.
        """


Kind = TypeVar("Kind", bound=Instrument)


@dataclass(slots=True)
class Recording:
    """One capture while it is recorded.

    Attributes:
        workload: As the first worker describes it; None until then.
        runtime: The first worker's interpreter and torch.
    """

    request: Request
    folder: Path
    listener: Listener
    instruments: Sequence[Instrument]
    workload: Workload | None = None
    runtime: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def compiles(self) -> bool:
        """Whether torch.compile is applied to the call: by request, or, as its workers know, by a remedy."""
        return self.request.compiles if self.workload is None else self.workload.compiles

    @property
    def device(self) -> str:
        """Kind of the device that the call uses."""
        return "cpu" if self.workload is None else self.workload.device.partition(":")[0]

    def of(self, kind: type[Kind]) -> Kind:
        """The instrument of that type."""
        return next(instrument for instrument in self.instruments if isinstance(instrument, kind))


@dataclass(frozen=True, slots=True)
class Turn:
    """One instrument's turn in one process.

    Attributes:
        process: Number of the timed process, from 0.
        worker: The process, warmed up and waiting; None afterwards.
    """

    recording: Recording
    process: int
    worker: Process | None

    @property
    def request(self) -> Request:
        """The request."""
        return self.recording.request

    @property
    def present_worker(self) -> Process:
        """The process, which there is unless the instrument measures afterwards."""
        assert self.worker is not None
        return self.worker

    def warn(self, what: str, error: MeasurementError) -> None:
        """Add what is missing and why to the report's warnings."""
        self.recording.warnings.append(f"{what}: {error}")


def measure_at_once(measurements: Iterable[Stages]) -> None:
    """Run measurements at the same time, each in its process on its core: a stage of all, then the next."""
    with ExitStack() as stack:
        going_on = [stack.enter_context(closing(each)) for each in measurements]
        for _ in range(3):
            for each in going_on:
                next(each, None)
