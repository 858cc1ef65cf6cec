"""What a recording is asked for, and who is told how far it has come."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from overhead_lens.target import Target


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured; more effort, narrower intervals.

    Attributes:
        processes: Timed ones, of each side of a comparison.
        blocks: Of each process, as long as its ``clock_budget_ns`` last.
        samples_per_process: Stacks of each sampled process; half as many where two sides cannot be sampled at once.
        sampled_every: Of so many timed processes one is sampled, the first of them.
    """

    processes: int = 5
    blocks: int = 25
    clock_budget_ns: int = 1_500_000_000
    samples_per_process: int = 600
    sampled_every: int = 1


STANDARD = Effort()
QUICK = Effort(processes=3, blocks=15, clock_budget_ns=600_000_000, samples_per_process=500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What every recording is told.

    Attributes:
        target: What is measured.
        params: Parameter name to text.
        compile_options: Keyword arguments of torch.compile; None for eager.
        output: Directory the user named; None for a new one under ``parent``.
        parent: Where new captures go.
        timeout_s: Limit for one step of one worker.
        command: The command line that asked for it.
    """

    target: Target
    params: Mapping[str, str]
    compile_options: Mapping[str, Any] | None
    output: Path | None
    parent: Path
    timeout_s: float
    effort: Effort = STANDARD
    command: Sequence[str] = ()

    @property
    def compiles(self) -> bool:
        """Whether torch.compile is applied."""
        return self.compile_options is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Order):
    """What to record of one call.

    Attributes:
        instructions: Whether instructions are counted too.
        counted_calls: Calls to count the instructions of; None for as many as their time allows.
        python: Interpreter of the workers.
        variables: Environment variables of the workers.
    """

    instructions: bool = False
    counted_calls: int | None = None
    python: str = sys.executable
    variables: Mapping[str, str] = field(default_factory=dict)

    def load_arguments(self) -> dict[str, Any]:
        """What a worker is told to load."""
        options = self.compile_options
        return {
            "target": self.target.to_json(),
            "params": dict(self.params),
            "compile_options": None if options is None else dict(options),
        }


class Listener(Protocol):
    """Is told how far the recording has come."""

    def begin(self, steps: int) -> None:
        """``steps`` steps will follow."""

    def step(self, text: str) -> None:
        """The next step, in words."""
