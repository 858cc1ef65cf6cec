"""Reads the sampled stacks of a capture, ``stacks.txt.gz``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import STACKS
from overhead_lens.readers.py_spy.stacks import by_root, inside, parse_stacks, read_folded
from overhead_lens.readers.py_spy.truncated_stacks import completed
from overhead_lens.stack import Stack
from overhead_lens.worker.loop import LOOP_NAME


class Sampled(Struct, frozen=True):
    """The outcome of sampling: stacks taken, unreadable stacks, and the reason if there are none."""

    samples: int = 0
    errors: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """Stacks inside the measured loop, one sequence per process that gave any; how sampling went."""

    processes: Sequence[Sequence[Stack]] = ()
    sampled: Sampled = field(default_factory=Sampled)

    @property
    def stacks(self) -> list[Stack]:
        """The stacks of all processes."""
        return [stack for stacks in self.processes for stack in stacks]


def read_samples(capture: Capture) -> Samples:
    """Stacks of the measured loop.

    Raises:
        UsageError: The file is damaged.
    """
    path = capture.existing(STACKS)
    lines: tuple[str, ...] = ()
    if path is not None:
        try:
            lines = read_folded(path)
        except ValueError as error:
            raise capture.damaged(f"{STACKS}: {error}") from error
    return Samples(stacks_per_process(lines), capture.note("samples", Sampled) or Sampled())


def stacks_per_process(folded: Sequence[str]) -> list[list[Stack]]:
    """Stacks inside the measured loop, one list per process that gave any."""
    return completed([stacks for group in by_root(parse_stacks(folded)) if (stacks := inside(group, LOOP_NAME))])
