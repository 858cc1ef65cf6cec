"""Samples: stacks of the measured loop, in timed processes after their blocks."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from overhead_lens.captures.files import STACKS
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.clock.record import BLOCK_NS, Clock
from overhead_lens.instruments.instrument import Turn, When
from overhead_lens.instruments.samples.evidence import Sampled
from overhead_lens.instruments.samples.sampler import Sampling
from overhead_lens.machine.operations import Operation
from overhead_lens.machine.process import Process


class Spinning(Struct, frozen=True):
    """The worker's process, which runs the loop from now on."""

    pid: int


class Spun(Struct, frozen=True):
    """Calls made while the loop ran."""

    calls: int


SPIN = Operation("instruments.samples.worker:spin", Spinning)
# Any line ends the loop, which then replies.
_STOP = Operation("instruments.samples.worker:stop", Spun)


class SampleStacks:
    """Stacks of all sampled processes, until py-spy is refused.

    Attributes:
        folded: py-spy's output by process.
        taken: How sampling went so far.
    """

    name: ClassVar[str] = "samples"
    when: ClassVar[When] = When.TIMED

    def __init__(self) -> None:
        self.folded: list[str] = []
        self.taken = Sampled()

    def measure(self, turn: Turn) -> None:
        """Sample every ``sampled_every``-th process."""
        effort = turn.request.effort
        if turn.process % effort.sampled_every:
            return
        threads = turn.recording.of(Clock).use_threads[turn.process]
        with ExitStack() as stack:
            self.keep(self.start(stack, turn.recording.folder, turn.asked, effort.samples_per_process, threads=threads))

    def start(
        self, stack: ExitStack, folder: Path, worker: Process, count: int, core: int | None = None, *, threads: bool
    ) -> Sampling | None:
        """Attach the sampler to a process, until ``stack`` ends; None after a refusal.

        Args:
            folder: For the sampler's own file.
            worker: Warmed up.
            count: Stacks wanted.
            core: Core of process and sampler meanwhile; None for the sampler's choice.
            threads: Whether the call runs on several threads.
        """
        if self.taken.reason:
            return None
        spinning = worker.ask(SPIN, chunk_ns=BLOCK_NS, tracer_pid=os.getpid())
        stack.callback(worker.ask, _STOP)
        try:
            return stack.enter_context(Sampling(spinning.pid, count, folder, worker.name, core, threads=threads))
        except MeasurementError as error:
            self._refused(error)
            return None

    def keep(self, sampling: Sampling | None) -> None:
        """Wait for a sampler's stacks."""
        if sampling is None:
            return
        try:
            run = sampling.finish()
        except MeasurementError as error:
            self._refused(error)
            return
        self.folded.append(run.folded)
        self.taken = Sampled(self.taken.samples + run.sample_count, self.taken.errors + run.error_count, None)

    def _refused(self, error: MeasurementError) -> None:
        self.taken = Sampled(self.taken.samples, self.taken.errors, str(error))

    def write(self, folder: Path) -> Any:
        """Write ``stacks.txt.gz``, if there are stacks."""
        if self.folded:
            write_stacks(folder, self.folded)
        return self.taken


def write_stacks(folder: Path, folded: Sequence[str]) -> None:
    """Write folded stacks, each sampler's under a root frame of its own."""
    with gzip.open(folder / STACKS, "wt", encoding="utf-8") as target:
        for number, text in enumerate(folded):
            target.writelines(f"sampler {number} (py-spy:1);{line}\n" for line in text.splitlines() if line)
