"""What an instrument is, and the recording that it is part of.

Every instrument is a folder: ``worker.py`` runs in the measured process, ``record.py`` asks for it and writes its files,
``evidence.py`` reads them again as a typed value. A new one is a folder and a line in ``registry.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.operations import Workload
from overhead_lens.machine.process import Process
from overhead_lens.machine.request import Listener, Request


class When(Enum):
    """In which process of a recording an instrument measures."""

    TRACED = auto()
    """In the one that is traced, which is not timed."""

    TIMED = auto()
    """In every timed one, one after the other."""

    LAST = auto()
    """In the last of the timed ones, at its end."""

    AFTERWARDS = auto()
    """In processes of its own, when all others have ended."""


class Instrument(Protocol):
    """One way of measuring a call. An instance is made for each recording and keeps what was measured.

    Attributes:
        name: Its key in ``meta.json``.
        when: In which process it measures.
    """

    name: ClassVar[str]
    when: ClassVar[When]

    def measure(self, turn: Turn) -> None:
        """Measure in the process whose turn it is.

        Raises:
            MeasurementError: Without this instrument there is no capture. What can be spared ends in a warning.
        """

    def write(self, folder: Path) -> Any:
        """Write its files; returns what ``meta.json`` says of it, None for nothing."""


Kind = TypeVar("Kind", bound=Instrument)


@dataclass(slots=True)
class Recording:
    """One capture while it is recorded.

    Attributes:
        workload: What the first worker says of the workload; None until then.
        runtime: The same of its interpreter.
        warnings: What the report is to say.
    """

    request: Request
    folder: Path
    listener: Listener
    instruments: Sequence[Instrument]
    workload: Workload | None = None
    runtime: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def of(self, kind: type[Kind]) -> Kind:
        """The instrument of that type."""
        return next(each for each in self.instruments if isinstance(each, kind))


@dataclass(frozen=True, slots=True)
class Turn:
    """One instrument's turn in one process.

    Attributes:
        process: Number of the timed process, from 0.
        worker: The process; it is warmed up and waits. None afterwards.
    """

    recording: Recording
    process: int
    worker: Process | None

    @property
    def request(self) -> Request:
        """What is recorded."""
        return self.recording.request

    @property
    def asked(self) -> Process:
        """The process, of an instrument that measures in one."""
        assert self.worker is not None
        return self.worker

    def warn(self, what: str, error: MeasurementError) -> None:
        """Have the report say what is missing and why."""
        self.recording.warnings.append(f"{what}: {error}")
