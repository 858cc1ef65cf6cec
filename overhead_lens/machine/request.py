"""Requests for recordings, and the listener to their progress."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from overhead_lens.target import Target


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of measurement: more gives narrower intervals.

    Attributes:
        processes: Timed processes, of each side of a comparison.
        blocks: Of each process, while its ``clock_budget_ns`` last.
        samples_per_process: Stacks of each sampled process; half as many where two sides cannot be sampled at once.
        sampled_every: Every so-many-th timed process is sampled, from the first on.
    """

    processes: int = 5
    blocks: int = 25
    clock_budget_ns: int = 1_500_000_000
    samples_per_process: int = 600
    sampled_every: int = 1


CAPTURES = Path("traces")

STANDARD = Effort()
QUICK = Effort(processes=3, blocks=15, clock_budget_ns=600_000_000, samples_per_process=500)


def command_line() -> tuple[str, ...]:
    """The command line of this process."""
    return ("overhead-lens", *sys.argv[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A request for any recording.

    Attributes:
        compile_options: Keyword arguments of torch.compile; None for eager.
        output: Directory the user named; None for a new one under ``parent``.
    """

    target: Target
    params: Mapping[str, str]
    compile_options: dict[str, Any] | None
    timeout_s: float
    output: Path | None = None
    parent: Path = CAPTURES
    effort: Effort = STANDARD
    command: Sequence[str] = field(default_factory=command_line)

    @property
    def compiles(self) -> bool:
        """Whether torch.compile is applied."""
        return self.compile_options is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedies:
    """Remedies that a call is measured with.

    Attributes:
        names: In the order in which they are applied.
        folder: Where a remedy keeps what all processes can share.
    """

    names: tuple[str, ...]
    file: Path | None
    folder: Path

    def to_json(self) -> dict[str, Any]:
        """The remedies as JSON values."""
        file = None if self.file is None else str(self.file.absolute())
        return {"names": list(self.names), "file": file, "folder": str(self.folder.absolute())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Order):
    """A request for a capture.

    Attributes:
        instructions: Whether instructions are counted too.
        counted_calls: Calls whose instructions are counted; None for as many as their time allows.
        remedies: What the call is changed by; None for the call as it is.
        displaced_bytes: Memory that is read before every call, 0 for a hot loop; None if caches are not part of the request.
        has_arguments: Whether a call from Python has arguments.
    """

    instructions: bool = False
    counted_calls: int | None = None
    python: str = sys.executable
    variables: Mapping[str, str] = field(default_factory=dict)
    remedies: Remedies | None = None
    displaced_bytes: int | None = None
    has_arguments: bool = False

    def load_arguments(self) -> dict[str, Any]:
        """Arguments of the worker's ``load``."""
        return {
            "target": self.target.to_json(),
            "params": dict(self.params),
            "compile_options": self.compile_options,
            **({} if self.remedies is None else {"remedies": self.remedies.to_json()}),
            **({"displaced_bytes": self.displaced_bytes} if self.displaced_bytes else {}),
        }


class Listener(Protocol):
    """Receives the progress of a recording."""

    def begin(self, steps: int) -> None:
        """``steps`` steps will follow."""

    def step(self, text: str) -> None:
        """The next step, in words."""
