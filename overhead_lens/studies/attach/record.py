"""Records the watch of a process that was started without this program."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from threading import Event

from overhead_lens.captures.directory import recording_directory, write_meta
from overhead_lens.captures.files import KINETO, STACKS
from overhead_lens.captures.model import recorded
from overhead_lens.errors import MeasurementError
from overhead_lens.machine.environment import describe_machine
from overhead_lens.machine.guard import threads_of
from overhead_lens.machine.other_process import examine
from overhead_lens.machine.request import CAPTURES, Listener, command_line
from overhead_lens.readers.py_spy.threads import read_threads
from overhead_lens.samplers.blocks import blocks_of, write_blocks
from overhead_lens.samplers.py_spy import SEES
from overhead_lens.samplers.sampler import NoStackError, Watch, folded
from overhead_lens.studies.attach.analysis import ProcessBudget, make_process
from overhead_lens.studies.attach.inject import Bounds, inject, require_injection
from overhead_lens.studies.attach.stored import PROCESS, ProcessMeta
from overhead_lens.studies.attach.watch import Watched, limit_s, watch
from overhead_lens.taxonomy.classifier import Classifier

MOST_RATE_HZ = 40
MOST_STOPS_HZ = 200
"""Each stack stops a process for each of its threads: half to one ms (docs/methodology/attach.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachRequest:
    """A request to watch a process.

    Attributes:
        rate_hz: Stacks a second of each thread; None for ``default_rate_hz``.
        trace: Whether the process then records itself with torch.profiler for a moment.
        output: Directory the user named; None for a new one under ``parent``.
    """

    pid: int
    seconds: float
    rate_hz: int | None = None
    subprocesses: bool = False
    trace: bool = False
    output: Path | None = None
    parent: Path = CAPTURES
    command: Sequence[str] = field(default_factory=command_line)

    def watch(self, folder: Path) -> Watch:
        """The request to the sampler, with its file in ``folder``."""
        output = folder / ".watch.raw"
        rate_hz = self.rate_hz or default_rate_hz(len(threads_of(self.pid)))
        return Watch(self.pid, rate_hz, limit_s(self.seconds), output, self.subprocesses, bound=True)


def default_rate_hz(threads: int) -> int:
    """Samples per second by the number of threads: fewer if each sample stops more threads."""
    return max(1, min(MOST_RATE_HZ, MOST_STOPS_HZ // max(1, threads)))


def record_process(request: AttachRequest, interrupted: Event, listener: Listener) -> Path:
    """Watch a process and store what was seen; returns the directory.

    Raises:
        UsageError: There is no such process, it is not a Python process, or the output place is wrong.
        MeasurementError: It cannot be watched, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    if request.trace:
        require_injection(examine(request.pid))
    listener.begin(4 if request.trace else 3)
    with recording_directory(request.output, request.parent, f"process-{request.pid}") as folder:
        watched = watch(request.watch(folder), request.seconds, interrupted, listener)
        blocks = blocks_of(watched.run.sequences, watched.thread, watched.alive)
        write_blocks(folder / STACKS, ((block, 1) for block in blocks))
        untraced = _trace(request, watched, folder, interrupted, listener)
        write_meta(folder, PROCESS, meta_of(request, watched, started, untraced))
        return folder


def _trace(
    request: AttachRequest, watched: Watched, folder: Path, interrupted: Event, listener: Listener
) -> tuple[str, ...]:
    """Store a trace of the process, if it is requested; why there is none."""
    if not request.trace:
        return ()
    listener.step(f"torch.profiler records process {request.pid} for up to {Bounds().seconds:g} s")
    plain = folder / ".kineto.json"
    try:
        inject(watched.process, Bounds(), plain, interrupted)
    except MeasurementError as error:
        return (f"there is no trace: {error}",)
    with plain.open("rb") as source, gzip.open(folder / KINETO, "wb", compresslevel=1) as target:
        shutil.copyfileobj(source, target)
    plain.unlink()
    return ()


def watch_once(
    request: AttachRequest, classifier: Classifier, interrupted: Event, listener: Listener
) -> ProcessBudget | None:
    """The budget of a watch that is not stored, without what it cost; None if it was over before the first stack.

    Raises:
        UsageError: There is no such process, or it is not a Python process.
        MeasurementError: It cannot be watched.
    """
    started = datetime.now(timezone.utc)
    with tempfile.TemporaryDirectory(prefix="overhead-lens-") as folder:
        try:
            watched = watch(request.watch(Path(folder)), request.seconds, interrupted, listener, load=False)
        except NoStackError:
            return None
    threads = read_threads(folded(watched.run.sequences).splitlines(), request.pid)
    return make_process(meta_of(request, watched, started), threads, classifier, "")


def meta_of(request: AttachRequest, watched: Watched, started: datetime, untraced: tuple[str, ...] = ()) -> ProcessMeta:
    """``meta.json`` of a watch."""
    process, run = watched.process, watched.run
    environment = {**describe_machine(), "python": process.python, "torch": process.torch}
    return ProcessMeta(
        pid=process.pid,
        process_command=process.command,
        python=process.python,
        torch=process.torch,
        duration_ns=watched.duration_ns,
        rate_hz=watched.rate_hz,
        subprocesses=request.subprocesses,
        samples=run.sample_count,
        errors=run.error_count,
        before=list(watched.before),
        during=list(watched.during),
        unplaced=watched.unplaced,
        running=sorted(watched.running.items()),
        in_system=sorted(watched.in_system.items()),
        sees=SEES,
        warnings=[*watched.notes, *untraced],
        **recorded(environment, request.command, started),
    )
