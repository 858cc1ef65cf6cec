"""Samples: stacks of the measured loop, in timed processes after their blocks."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import STACKS
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.clock.record import BLOCK_NS, Clock
from overhead_lens.instruments.instrument import SideBySide, Stages, Turn, When
from overhead_lens.instruments.samples.sampler import Sampling
from overhead_lens.machine.operations import Nothing, Operation
from overhead_lens.machine.process import Process
from overhead_lens.readers.py_spy.stacks import by_root, inside, parse_stacks, read_folded
from overhead_lens.readers.py_spy.truncated_stacks import completed
from overhead_lens.samplers.overdue import without_overdue
from overhead_lens.samplers.sampler import SamplerRun, folded
from overhead_lens.stack import Stack
from overhead_lens.worker.loop import LOOP_NAME


class Sampled(Struct, frozen=True):
    """The outcome of sampling: stacks taken, unreadable stacks, and the reason if there are none."""

    samples: int = 0
    errors: int = 0
    reason: str | None = None


class Traceable(Struct, frozen=True):
    """The worker's process, which the sampler may attach to."""

    pid: int


class Spinning(Struct, frozen=True):
    """The time, of ``time.monotonic_ns``, from which on the loop runs and the sampler keeps pace, and that of a call."""

    since_ns: int
    call_ns: float


ALLOW = Operation("instruments.samples.worker:allow_tracing", Traceable)
SPIN = Operation("instruments.samples.worker:spin", Spinning)
# Any line ends the loop, which then replies.
_STOP = Operation("instruments.samples.worker:stop", Nothing)

# A frame of stacks that were taken before the sampler kept pace.
_SETTLING = ";settle (overhead_lens/instruments/samples/worker.py:"


class SampleStacks(SideBySide):
    """Stacks of all sampled processes, until py-spy is refused.

    Attributes:
        folded: py-spy's output by process.
        sampled: How sampling went so far.
    """

    name = "samples"
    when = When.SAMPLED

    def __init__(self) -> None:
        self.folded: list[str] = []
        self.sampled = Sampled()

    def stages(self, turn: Turn, core: int | None = None) -> Stages:
        """Sample every ``sampled_every``-th process, on a core; see ``SideBySide``."""
        effort = turn.request.effort
        if turn.process % effort.sampled_every == 0:
            threads = turn.recording.of(Clock).use_threads[turn.process]
            folder, worker = turn.recording.folder, turn.present_worker
            yield from self.sample(folder, worker, effort.samples_per_process, core, threads=threads)

    def sample(self, folder: Path, worker: Process, count: int, core: int | None = None, *, threads: bool) -> Stages:
        """Sample a process, which runs its loop while the sampler is attached; no stages after a refusal.

        Args:
            core: Core of process and sampler meanwhile; None for the sampler's choice.
            threads: Whether the call runs on several threads.
        """
        if self.sampled.reason:
            return
        pid = worker.ask(ALLOW, tracer_pid=os.getpid()).pid
        with ExitStack() as stack:
            try:
                sampling = stack.enter_context(Sampling(pid, count, folder, worker.name, core, threads=threads))
                sampling.wait_until_begun()
            except MeasurementError as error:
                self.refused(error)
                return
            worker.send(SPIN, chunk_ns=BLOCK_NS)
            spinning = None
            try:
                yield
                spinning = worker.receive(SPIN)
                sampling.end(spinning.since_ns)
                yield
                try:
                    run = sampling.finish()
                except MeasurementError as error:
                    self.refused(error)
                else:
                    self.add(run, sampling.stacks_per_call(spinning.call_ns))
            finally:
                if spinning is None:  # interrupted before this reply
                    worker.receive(SPIN)
                worker.ask(_STOP)

    def add(self, run: SamplerRun, per_call: float) -> None:
        """Keep the stacks of a process that count.

        Args:
            per_call: Stacks that may fall into one call.
        """
        measured = ([stack for stack in sequence if _SETTLING not in stack] for sequence in run.sequences)
        counted = [without_overdue(sequence, per_call) for sequence in measured]
        self.folded.append(folded(counted))
        samples = sum(map(len, counted))
        self.sampled = Sampled(self.sampled.samples + samples, self.sampled.errors + run.error_count, None)

    def refused(self, error: MeasurementError) -> None:
        """Keep why there are no stacks; no other process is sampled."""
        self.sampled = Sampled(self.sampled.samples, self.sampled.errors, str(error))

    def write(self, folder: Path) -> Any:
        """Write ``stacks.txt.gz``, if there are stacks."""
        if self.folded:
            write_stacks(folder, self.folded)
        return self.sampled


def write_stacks(folder: Path, folded: Sequence[str]) -> None:
    """Write folded stacks, each sampler's under a root frame of its own."""
    with gzip.open(folder / STACKS, "wt", encoding="utf-8") as target:
        for number, text in enumerate(folded):
            target.writelines(f"sampler {number} (py-spy:1);{line}\n" for line in text.splitlines() if line)


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
