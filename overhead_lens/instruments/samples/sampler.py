"""Attaches ``py-spy record --native`` to a warmed-up worker."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.cores import put_back, set_apart
from overhead_lens.readers.py_spy.paths import shortened

# A stack takes some 2 ms and the target must run in between: a higher rate is not reached (docs/methodology/sampling.md).
_RATE_HZ = 300

# Reading libtorch's symbols takes seconds before the first sample, and each sample pauses the target for 1 to 2 ms.
_START_S = 60.0
_SLOWEST_SAMPLE_S = 0.02

_REFUSED = re.compile(
    r"permission denied|operation not permitted|\bEPERM\b|os error 1\b|(requires|run as) root", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SamplerRun:
    """Result of one attachment: folded stacks (``frame;frame count`` per line), py-spy's counts of stacks and failures."""

    folded: str
    sample_count: int
    error_count: int


def find_sampler() -> str | None:
    """Path of py-spy: of this environment, else on PATH."""
    name = "py-spy.exe" if sys.platform == "win32" else "py-spy"
    own = Path(sysconfig.get_path("scripts"), name)
    return str(own) if own.is_file() else shutil.which(name)


class Sampling:
    """py-spy attached to process ``pid``, for about ``sample_count`` stacks at about 300 Hz.

    Native frames and waiting threads are included. py-spy takes whole seconds only, so the rate is adjusted to the count.

    Args:
        core: Core of the target's main thread and of py-spy; None for one of those that the target may use.
        threads: Whether the target's main thread waits for others.

    Raises:
        MeasurementError: py-spy is missing or cannot be run.
    """

    def __init__(
        self, pid: int, sample_count: int, folder: Path, name: str, core: int | None = None, *, threads: bool = False
    ) -> None:
        executable = find_sampler()
        if executable is None:
            raise MeasurementError("py-spy is not installed (pip install py-spy)")
        self._raw = folder / f".{name}.raw"
        self._timeout_s = _START_S + sample_count * _SLOWEST_SAMPLE_S
        duration_s = max(1, round(sample_count / _RATE_HZ))
        rate_hz = -(-sample_count // duration_s)
        command = [
            executable,
            "record",
            "--native",
            "--idle",
            "--full-filenames",
            "--pid",
            str(pid),
            "--rate",
            str(rate_hz),
        ]
        command += ["--duration", str(duration_s), "--format", "raw", "--output", str(self._raw)]
        with ExitStack() as stack:
            core = stack.enter_context(_shared_core(pid, core))
            if threads:
                stack.enter_context(_not_preempting(pid))
            with _starting_on(core):
                self._process = _start(command)
            self._until_closed = stack.pop_all()

    def __enter__(self) -> Sampling:
        return self

    def __exit__(self, *_: object) -> None:
        """End py-spy, if it still runs; leave no file."""
        if self._process.poll() is None:
            self._process.kill()
        with self._process:
            pass  # Waits for it and closes its pipe.
        self._until_closed.close()
        with contextlib.suppress(OSError):
            self._raw.unlink(missing_ok=True)

    def finish(self) -> SamplerRun:
        """Wait for the stacks.

        Raises:
            MeasurementError: py-spy may not attach, or took no sample; the message says which.
        """
        try:
            output, _ = self._process.communicate(timeout=self._timeout_s)
        except subprocess.TimeoutExpired:
            raise MeasurementError(f"py-spy did not finish within {self._timeout_s:.0f} s") from None
        chatter = output.decode(errors="replace")
        folded = self._raw.read_text(encoding="utf-8", errors="replace") if self._raw.exists() else ""
        counted = re.search(r"Samples: (\d+) Errors: (\d+)", chatter)
        if counted is None or not folded:
            raise MeasurementError(explain_failure(chatter))
        return SamplerRun(shortened(folded), int(counted[1]), int(counted[2]))


@contextlib.contextmanager
def _shared_core(pid: int, core: int | None) -> Iterator[int | None]:
    """Keep the main thread of ``pid`` on a core of its own; yields the core, None where unknown.

    py-spy is to share it, so that one runs while the other does not: from a core beside, which shares caches or execution units,
    py-spy slows the target down just before it stops it, and not all code by as much (docs/methodology/sampling.md).
    """
    before: dict[int, set[int]] = {}
    try:
        with contextlib.suppress(OSError, AttributeError):
            core = max(os.sched_getaffinity(pid)) if core is None else core
            before = set_apart(pid, core)
        yield core
    finally:
        put_back(pid, before)


@contextlib.contextmanager
def _starting_on(core: int | None) -> Iterator[None]:
    """Let processes that are started meanwhile start on a core, if one is named."""
    before = None
    try:
        with contextlib.suppress(OSError):
            if core is not None:
                before = os.sched_getaffinity(0)
                os.sched_setaffinity(0, {core})
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, before)


@contextlib.contextmanager
def _not_preempting(thread: int) -> Iterator[None]:
    """Let a thread that wakes up wait for what runs on its core (sched(7), ``SCHED_BATCH``).

    py-spy stops all threads and lets the main one go first. Taking the core from py-spy, it would wait at its next barrier for
    threads that are still stopped, and be sampled there (docs/methodology/sampling.md).
    """
    before = None
    try:
        with contextlib.suppress(OSError, AttributeError):
            if os.sched_getscheduler(thread) == os.SCHED_OTHER:
                os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))
                before = os.SCHED_OTHER
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(thread, before, os.sched_param(0))


def explain_failure(chatter: str) -> str:
    """One line on why py-spy could not sample, from what it printed."""
    if _REFUSED.search(chatter):
        return "no permission to attach py-spy (ptrace): run as root, add CAP_SYS_PTRACE, or see `overhead-lens doctor`"
    lines = [line.strip() for line in chatter.splitlines() if line.strip() and "py-spy>" not in line]
    return f"py-spy failed: {lines[0] if lines else 'it said nothing'}"


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        raise MeasurementError(f"py-spy could not run: {error.strerror or error} ({command[0]})") from error
