"""py-spy as a sampler: ``py-spy record --native --idle`` in a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.guard import descendants, threads_of
from overhead_lens.machine.other_process import thread_states, waits_in
from overhead_lens.readers.py_spy.speedscope import read_sequences
from overhead_lens.samplers.sampler import NoInterpreterError, NoStackError, NotPermittedError, SamplerRun, Watch

# Reading libtorch's symbols takes seconds before the first stack, and each stack pauses the target for 1 to 2 ms.
_START_S = 60.0
_SLOWEST_SAMPLE_S = 0.02

_DUMP_S = 10.0
_PAUSE_S, _LOOK_S = 2.0, 0.001

NO_NATIVE_FRAMES = "py-spy has no native frames on this system"
"""Why py-spy cannot sample where it does not unwind native code, as on macOS."""

_PR_SET_PDEATHSIG = 1

_NO_STACKS = "py-spy took no samples"

_BEGUN = re.compile(rb"Sampling process")
_COUNTED = re.compile(rb"Samples: (\d+) Errors: (\d+)")
_REFUSED = re.compile(
    r"permission denied|operation not permitted|\bEPERM\b|os error 1\b|(requires|run as) root", re.IGNORECASE
)
_NO_NATIVE = re.compile(r"--native.* not supported on your platform")
_NO_INTERPRETER = re.compile(r"python version|python interpreter|PyInterpreterState|_PyRuntime")


SEES = (
    "py-spy sees threads that run Python, waiting ones too, with their native frames; it does not see who holds the GIL, nor "
    "threads without Python (OpenMP's)"
)
"""Limits of the sampler, for people; every budget made of its stacks repeats them."""


def start_py_spy(watch: Watch) -> PySpy:
    """Attach ``py-spy record`` to a process.

    Raises:
        MeasurementError: py-spy is missing or cannot be run.
    """
    executable = find_sampler()
    if executable is None:
        raise MeasurementError("py-spy is not installed (pip install py-spy)")
    return PySpy(_start([executable, *_arguments(watch)], bound=watch.bound), watch)


class PySpy:
    """``py-spy record`` at work; leaving the context ends it, and nothing of it stays."""

    def __init__(self, process: subprocess.Popen[bytes], watch: Watch) -> None:
        self._process = process
        self._watched, self._output = watch.pid, watch.output
        # The thread that takes the stacks, and one that looks for new children ten times a second.
        self._sleepers = 1 + watch.subprocesses
        self._chatter = b""
        self._stopped = False
        stacks = watch.rate_hz * (watch.duration_s or 0)
        self._timeout_s = _START_S + stacks * _SLOWEST_SAMPLE_S

    def __enter__(self) -> PySpy:
        return self

    def __exit__(self, *_: object) -> None:
        """End py-spy, if it still runs; leave no file."""
        if self._process.poll() is None:
            self._process.kill()
        with self._process:
            pass  # Waits for it and closes its pipe.
        with contextlib.suppress(OSError):
            self._output.unlink(missing_ok=True)

    def wait_until_begun(self) -> None:
        """Return when py-spy reports that it samples.

        Raises:
            MeasurementError: It prints something else, or nothing.
        """
        self._read_until(_BEGUN, _START_S, "begin")

    def _read_until(self, pattern: re.Pattern[bytes], limit_s: float, step: str) -> re.Match[bytes]:
        """Read what py-spy prints until a pattern matches."""
        deadline_s = time.monotonic() + limit_s
        while (match := pattern.search(self._chatter)) is None:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([self._pipe], [], [], left_s)[0]:
                raise MeasurementError(f"py-spy did not {step} within {limit_s:.0f} s")
            line = self._pipe.readline()
            if not line:
                raise self._failure()
            self._chatter += line
        return match

    def _failure(self) -> MeasurementError:
        """The error of a py-spy that has ended."""
        if (code := self._process.wait()) < 0:
            if code == -signal.SIGINT and self._stopped:
                # It reports that it samples before it takes over SIGINT.
                return NoStackError(_NO_STACKS)
            return MeasurementError(f"py-spy was ended by {signal.Signals(-code).name}")
        chatter = self._chatter.decode(errors="replace")
        refused, lost = _REFUSED.search(chatter), _NO_INTERPRETER.search(chatter)
        kind = NotPermittedError if refused else NoInterpreterError if lost else MeasurementError
        return kind(explain_failure(chatter))

    @property
    def pid(self) -> int:
        """py-spy's process."""
        return self._process.pid

    @property
    def over(self) -> bool:
        """Whether py-spy has ended; reads what it has printed, since it would block when the pipe is full."""
        while not self._pipe.closed and select.select([self._pipe], [], [], 0)[0] and (line := self._pipe.readline()):
            self._chatter += line
        return self._process.poll() is not None

    def pause(self) -> None:
        """Stop py-spy between two stacks.

        Raises:
            MeasurementError: It holds its target all the time.
        """
        deadline_s = time.monotonic() + _PAUSE_S
        while True:
            self._send(signal.SIGSTOP)
            while not self.over and any(thread.state not in "TtZX" for thread in thread_states(self.pid)):
                time.sleep(_LOOK_S)
            if self.over or not _is_held(self._watched):
                return
            # It was stopped while it held a thread, which would not run until it goes on.
            self._send(signal.SIGCONT)
            if time.monotonic() > deadline_s:
                raise MeasurementError("py-spy does not release its target")
            time.sleep(_LOOK_S)

    def resume(self) -> None:
        """Let py-spy go on; it catches up with the stacks that were due meanwhile."""
        self._send(signal.SIGCONT)

    @property
    def caught_up(self) -> bool | None:
        """Whether py-spy sleeps until its next stack is due (proc(5), ``wchan``); it does not while stacks are overdue.

        None if unknown: no thread is seen to wait.
        """
        waits = [waits_in(self.pid, thread) for thread in threads_of(self.pid)]
        known = [wait for wait in waits if wait not in ("", "0")]
        return sum("nanosleep" in wait for wait in known) >= self._sleepers if known else None

    def stop(self) -> None:
        """End py-spy so that it writes its stacks, as Ctrl-C does."""
        self._stopped = True
        self._send(signal.SIGINT)
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def finish(self) -> SamplerRun:
        """Wait for the stacks.

        py-spy prints their count when they are in the file, about 0.3 s after it was stopped.

        Raises:
            MeasurementError: py-spy may not attach, or took no sample; the message says which.
        """
        counted = self._read_until(_COUNTED, self._timeout_s, "finish")
        try:
            sequences = read_sequences(self._output.read_bytes())
        except (OSError, ValueError) as error:
            raise MeasurementError(f"py-spy's stacks could not be read: {error}") from error
        if not sequences:
            raise NoStackError(_NO_STACKS)
        return SamplerRun(sequences, int(counted[1]), int(counted[2]))

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout


def find_sampler() -> str | None:
    """Path of py-spy: of this environment, else on PATH."""
    name = "py-spy.exe" if sys.platform == "win32" else "py-spy"
    own = Path(sysconfig.get_path("scripts"), name)
    return str(own) if own.is_file() else shutil.which(name)


def python_threads(pid: int) -> list[int]:
    """The threads of a process that run Python, as the operating system knows them; none if that is not known.

    The process is not stopped.
    """
    executable = find_sampler()
    if executable is None:
        return []
    command = [executable, "dump", "--nonblocking", "--json", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_DUMP_S)
        return [int(thread["os_thread_id"]) for thread in json.loads(done.stdout) if thread.get("os_thread_id")]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []


def explain_failure(chatter: str) -> str:
    """One line on why py-spy could not sample, from what it printed."""
    if _REFUSED.search(chatter):
        return "no permission to attach py-spy (ptrace): run as root, add CAP_SYS_PTRACE, or see `overhead-lens doctor`"
    if _NO_NATIVE.search(chatter):
        return NO_NATIVE_FRAMES
    lines = [line.strip() for line in chatter.splitlines() if line.strip() and "py-spy>" not in line]
    return f"py-spy failed: {lines[0] if lines else 'it said nothing'}"


def _arguments(watch: Watch) -> list[str]:
    flags = {"--threads": watch.by_thread, "--subprocesses": watch.subprocesses}
    arguments = [
        "record",
        "--native",
        *(flag for flag, is_set in flags.items() if is_set),
        "--idle",
        "--full-filenames",
    ]
    arguments += ["--pid", str(watch.pid), "--rate", str(watch.rate_hz)]
    arguments += [] if watch.duration_s is None else ["--duration", str(watch.duration_s)]
    return [*arguments, "--format", "speedscope", "--output", str(watch.output)]


def _ending_with_parent() -> Callable[[], object] | None:
    """A function that makes a child die with its parent (prctl(2)), even while stopped; the kernel then frees its target."""
    if sys.platform != "linux":
        return None
    call = ctypes.CDLL(None).prctl
    return lambda: call(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _start(command: list[str], *, bound: bool) -> subprocess.Popen[bytes]:
    try:
        # A session of its own: Ctrl-C on the terminal is for this program, which then stops py-spy. Unbuffered: its lines are
        # read as they come, what is left of them by communicate().
        return subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if name != "RUST_LOG"},
            preexec_fn=_ending_with_parent() if bound else None,  # noqa: PLW1509  (one system call, bound before the fork)
        )
    except OSError as error:
        raise MeasurementError(f"py-spy could not run: {error.strerror or error} ({command[0]})") from error


def _is_held(pid: int) -> bool:
    """Whether a tracer holds a thread of a process or of its children."""
    return any(thread.tracer for each in (pid, *descendants(pid)) for thread in thread_states(each))
