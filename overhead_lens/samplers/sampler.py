"""A request to a sampler, and its result; ``py_spy.py`` is the sampler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.errors import MeasurementError


class NotPermittedError(MeasurementError):
    """The system does not let the sampler look into the process."""


class NoInterpreterError(MeasurementError):
    """The sampler finds no interpreter that it knows in the process."""


class NoStackError(MeasurementError):
    """The sampler was stopped before its first stack."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A request to a sampler.

    Attributes:
        duration_s: It ends by itself after stacks for this many seconds; None: only when it is stopped.
        output: A file of the sampler's own while it runs, removed afterwards.
        by_thread: Begin each stack with its thread, ``thread (TID): NAME``.
        bound: It ends when the thread that started it does, even by SIGKILL (Linux). Starting it then copies this process's page
            tables (fork(2)), which a process that is itself measured would notice.
    """

    pid: int
    rate_hz: int
    duration_s: int | None
    output: Path
    subprocesses: bool = False
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

    def without_first(self, count: int) -> SamplerRun:
        """The run without the first ``count`` looks at the process; a thread that was there for fewer keeps its last stacks."""
        looks = max(0, max(map(len, self.sequences)) - count)
        sequences = tuple(sequence[max(0, len(sequence) - looks) :] for sequence in self.sequences) if looks else ()
        lost = sum(map(len, self.sequences)) - sum(map(len, sequences))
        return SamplerRun(sequences, self.sample_count - lost, self.error_count)


def folded(sequences: Iterable[Sequence[str]]) -> str:
    """Equal stacks summed up: a line ``frame;frame count`` each."""
    counts = Counter(stack for sequence in sequences for stack in sequence)
    return "".join(f"{stack} {count}\n" for stack, count in counts.items())
