"""The seam for samplers: what one is asked, what it sees, and what it gives. ``py_spy.py`` is one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from overhead_lens.errors import MeasurementError


class NotPermittedError(MeasurementError):
    """The system does not let the sampler look into the process."""


class NoInterpreterError(MeasurementError):
    """The sampler finds no interpreter that it knows in the process."""


class NoStackError(MeasurementError):
    """The sampler was stopped before its first stack."""


@dataclass(frozen=True, slots=True)
class Sees:
    """What a sampler can see, and what it cannot; every budget made of its stacks repeats ``sentence``.

    Attributes:
        native_frames: Frames of C and C++ between and below those of Python.
        gil: Which thread holds the GIL.
        idle_threads: Threads that wait.
        other_threads: Threads that run no Python: OpenMP's, autograd's before their first Python hook.
        subprocesses: Children of the process.
        sentence: The same for people, one line.
    """

    native_frames: bool
    gil: bool
    idle_threads: bool
    other_threads: bool
    subprocesses: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Watch:
    """What a sampler is asked to do.

    Attributes:
        rate_hz: Stacks a second, of every thread.
        duration_s: It ends by itself after stacks for this many seconds; None: only when it is stopped.
        output: A file of the sampler's own while it runs, removed afterwards.
        subprocesses: Watch the children, too.
        native: Whether to record native frames.
        by_thread: Begin each stack with its thread, ``thread (TID): NAME``.
        bound: It ends when the thread that started it does, even by SIGKILL (Linux). Starting it then copies this process's page
            tables (fork(2)), which a process that is itself measured would notice.
    """

    pid: int
    rate_hz: int
    duration_s: int | None
    output: Path
    subprocesses: bool = False
    native: bool = True
    by_thread: bool = True
    bound: bool = False


@dataclass(frozen=True, slots=True)
class SamplerRun:
    """Result of one watch.

    Attributes:
        sequences: The stacks of each thread in the order in which they were taken, folded: ``frame;frame``, outermost first.
        sample_count, error_count: The sampler's counts of stacks and failures.
    """

    sequences: tuple[tuple[str, ...], ...]
    sample_count: int
    error_count: int

    @property
    def folded(self) -> str:
        """Equal stacks summed up: a line ``frame;frame count`` each."""
        counts = Counter(stack for sequence in self.sequences for stack in sequence)
        return "".join(f"{stack} {count}\n" for stack, count in counts.items())


class Running(Protocol):
    """A sampler at work; leaving the context ends it, and nothing of it stays."""

    def __enter__(self) -> Running: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    @property
    def pid(self) -> int:
        """The sampler's process."""

    def wait_until_begun(self) -> None:
        """Return when it begins to take stacks.

        Raises:
            MeasurementError: It does not begin; the message says why.
        """

    @property
    def over(self) -> bool:
        """Whether it has ended: by itself, stopped, or since the process it watches is gone."""

    def pause(self) -> None:
        """Take no stack until ``resume``; the watched process is running when this returns."""

    def resume(self) -> None:
        """Go on, first with the stacks that were due meanwhile, one right after the other."""

    @property
    def caught_up(self) -> bool:
        """Whether it waits until its next stack is due."""

    def stop(self) -> None:
        """Ask it to end now and keep what it has, paused or not."""

    def finish(self) -> SamplerRun:
        """Wait for the stacks.

        Raises:
            MeasurementError: It may not attach, or took no stack; the message says which.
        """


class Sampler(Protocol):
    """Takes stacks of a running process from outside."""

    sees: Sees

    def start(self, watch: Watch) -> Running:
        """Attach to a process.

        Raises:
            MeasurementError: The sampler is missing or cannot be run.
        """
