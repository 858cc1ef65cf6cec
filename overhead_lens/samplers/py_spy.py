"""py-spy as a sampler: ``py-spy record --native --idle`` in a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
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
from overhead_lens.readers.py_spy.paths import shortened
from overhead_lens.samplers.sampler import NoInterpreterError, NoStackError, NotPermittedError, SamplerRun, Sees, Watch

# Reading libtorch's symbols takes seconds before the first stack, and each stack pauses the target for 1 to 2 ms.
_START_S = 60.0
_SLOWEST_SAMPLE_S = 0.02

_PR_SET_PDEATHSIG = 1

_BEGUN = re.compile(rb"Sampling process")
_COUNTED = re.compile(rb"Samples: (\d+) Errors: (\d+)")
_REFUSED = re.compile(
    r"permission denied|operation not permitted|\bEPERM\b|os error 1\b|(requires|run as) root", re.IGNORECASE
)
_NO_INTERPRETER = re.compile(r"python version|python interpreter|PyInterpreterState|_PyRuntime")


class PySpy:
    """Starts ``py-spy record``."""

    sees = Sees(
        native_frames=True,
        gil=False,
        idle_threads=True,
        other_threads=False,
        subprocesses=True,
        sentence="py-spy sees threads that run Python, waiting ones too, with their native frames; it does not see who holds"
        " the GIL, nor threads without Python (OpenMP's)",
    )

    def start(self, watch: Watch) -> PySpyRunning:
        """Attach to a process.

        Raises:
            MeasurementError: py-spy is missing or cannot be run.
        """
        executable = find_sampler()
        if executable is None:
            raise MeasurementError("py-spy is not installed (pip install py-spy)")
        return PySpyRunning(_start([executable, *_arguments(watch)], bound=watch.bound), watch)


class PySpyRunning:
    """``py-spy record`` at work."""

    def __init__(self, process: subprocess.Popen[bytes], watch: Watch) -> None:
        self._process = process
        self._output = watch.output
        self._chatter = b""
        stacks = watch.rate_hz * (watch.duration_s or 0)
        self._timeout_s = _START_S + stacks * _SLOWEST_SAMPLE_S

    def __enter__(self) -> PySpyRunning:
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
        """Return when py-spy says that it samples.

        Raises:
            MeasurementError: It says something else, or nothing.
        """
        self._read_until(_BEGUN, _START_S, "begin")

    def _read_until(self, said: re.Pattern[bytes], limit_s: float, step: str) -> re.Match[bytes]:
        """Read what py-spy prints until it says something."""
        deadline_s = time.monotonic() + limit_s
        while (found := said.search(self._chatter)) is None:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([self._pipe], [], [], left_s)[0]:
                raise MeasurementError(f"py-spy did not {step} within {limit_s:.0f} s")
            line = self._pipe.readline()
            if not line:
                raise _failure(self._chatter.decode(errors="replace"))
            self._chatter += line
        return found

    @property
    def over(self) -> bool:
        """Whether py-spy has ended."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Have py-spy end and write what it has, as Ctrl-C does."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    def finish(self) -> SamplerRun:
        """Wait for the stacks.

        py-spy counts them when they are in the file; it then takes 0.3 s to give its memory back, which is not waited for.

        Raises:
            MeasurementError: py-spy may not attach, or took no sample; the message says which.
        """
        counted = self._read_until(_COUNTED, self._timeout_s, "finish")
        folded = self._output.read_text(encoding="utf-8", errors="replace") if self._output.exists() else ""
        if not folded:
            raise NoStackError("py-spy took no stack")
        return SamplerRun(shortened(folded), int(counted[1]), int(counted[2]))

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout


def find_sampler() -> str | None:
    """Path of py-spy: of this environment, else on PATH."""
    name = "py-spy.exe" if sys.platform == "win32" else "py-spy"
    own = Path(sysconfig.get_path("scripts"), name)
    return str(own) if own.is_file() else shutil.which(name)


def explain_failure(chatter: str) -> str:
    """One line on why py-spy could not sample, from what it printed."""
    if _REFUSED.search(chatter):
        return "no permission to attach py-spy (ptrace): run as root, add CAP_SYS_PTRACE, or see `overhead-lens doctor`"
    lines = [line.strip() for line in chatter.splitlines() if line.strip() and "py-spy>" not in line]
    return f"py-spy failed: {lines[0] if lines else 'it said nothing'}"


def _failure(chatter: str) -> MeasurementError:
    """The error of what py-spy printed."""
    refused, lost = _REFUSED.search(chatter), _NO_INTERPRETER.search(chatter)
    kind = NotPermittedError if refused else NoInterpreterError if lost else MeasurementError
    return kind(explain_failure(chatter))


def _arguments(watch: Watch) -> list[str]:
    flags = {"--native": watch.native, "--threads": watch.by_thread, "--subprocesses": watch.subprocesses}
    arguments = ["record", *(flag for flag, given in flags.items() if given), "--idle", "--full-filenames"]
    arguments += ["--pid", str(watch.pid), "--rate", str(watch.rate_hz)]
    arguments += [] if watch.duration_s is None else ["--duration", str(watch.duration_s)]
    return [*arguments, "--format", "raw", "--output", str(watch.output)]


def _ending_with_parent() -> Callable[[], object] | None:
    """What a child calls to get SIGINT when its parent ends (prctl(2)), upon which py-spy lets go of its target."""
    if sys.platform != "linux":
        return None
    call = ctypes.CDLL(None).prctl
    return lambda: call(_PR_SET_PDEATHSIG, signal.SIGINT)


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
            preexec_fn=_ending_with_parent() if bound else None,  # noqa: PLW1509  (one system call, bound before the fork)
        )
    except OSError as error:
        raise MeasurementError(f"py-spy could not run: {error.strerror or error} ({command[0]})") from error
