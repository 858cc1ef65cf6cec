"""The samples instrument: ``py-spy record --native`` attached to a warmed-up worker."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.errors import MeasurementError

# A stack takes more than 1 ms: at this rate the target still runs between two, and catches up with its caches.
LEAST_RATE_HZ = 500

# Reading libtorch's symbols takes seconds before the first sample, and each sample pauses the target for about 1 ms.
_START_S = 60.0
_SLOWEST_SAMPLE_S = 0.02

_REFUSED = re.compile(
    r"permission denied|operation not permitted|\bEPERM\b|os error 1\b|(requires|run as) root", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SamplerRun:
    """What one attachment gave: folded stacks (``frame;frame count`` per line) and py-spy's own count of failures."""

    folded: str
    sample_count: int
    error_count: int


def find_sampler() -> str | None:
    """Path of the py-spy executable: of this environment, else of PATH."""
    name = "py-spy.exe" if sys.platform == "win32" else "py-spy"
    own = Path(sysconfig.get_path("scripts"), name)
    return str(own) if own.is_file() else shutil.which(name)


def sample(pid: int, sample_count: int, folder: Path, name: str, least_rate_hz: int = LEAST_RATE_HZ) -> SamplerRun:
    """Take about ``sample_count`` stacks of process ``pid`` at about ``least_rate_hz``, with native frames and waiting threads.

    py-spy takes whole seconds only: the rate is what gives the number asked for in the fewest.

    Raises:
        MeasurementError: py-spy is missing, may not attach, or took no sample; the message says which.
    """
    executable = find_sampler()
    if executable is None:
        raise MeasurementError("py-spy is not installed (pip install py-spy)")
    raw = folder / f".{name}.raw"
    duration_s = max(1, sample_count // least_rate_hz)
    rate_hz = -(-sample_count // duration_s)
    command = [executable, "record", "--native", "--idle", "--pid", str(pid), "--rate", str(rate_hz)]
    command += ["--duration", str(duration_s), "--format", "raw", "--output", str(raw)]
    try:
        with _on_one_core(pid):
            chatter = _run(command, _START_S + sample_count * _SLOWEST_SAMPLE_S)
        folded = raw.read_text(encoding="utf-8", errors="replace") if raw.exists() else ""
    finally:
        with contextlib.suppress(OSError):
            raw.unlink(missing_ok=True)
    counted = re.search(r"Samples: (\d+) Errors: (\d+)", chatter)
    if counted is None or not folded:
        raise MeasurementError(explain_failure(chatter))
    return SamplerRun(folded, int(counted[1]), int(counted[2]))


@contextlib.contextmanager
def _on_one_core(pid: int) -> Iterator[None]:
    """Keep the thread ``pid`` and what this thread starts meanwhile on one core, so that one runs while the other does not.

    Beside the target, on a core that shares a cache or execution units with the target's, py-spy slows it down just before it
    stops it, and not all code by as much: spinning for 10.3 us in a call of 24.1 us was given 4.1 us at 1000 Hz and 9.2 us at
    300 Hz; on one core 10.5 and 10.6 us (docs/accuracy.md).
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before: dict[int, set[int]] = {}
    try:
        with contextlib.suppress(OSError):
            core = max(os.sched_getaffinity(pid))
            for each in (pid, 0):
                before[each] = os.sched_getaffinity(each)
                os.sched_setaffinity(each, {core})
        yield
    finally:
        for each, cores in before.items():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(each, cores)


def explain_failure(chatter: str) -> str:
    """One line for what py-spy printed when it could not sample."""
    if _REFUSED.search(chatter):
        return "no permission to attach py-spy (ptrace): run as root, add CAP_SYS_PTRACE, or see `overhead-lens doctor`"
    lines = [line.strip() for line in chatter.splitlines() if line.strip() and "py-spy>" not in line]
    return f"py-spy failed: {lines[0] if lines else 'it said nothing'}"


def _run(command: list[str], timeout_s: float) -> str:
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        raise MeasurementError(f"py-spy could not run: {error.strerror or error} ({command[0]})") from error
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"py-spy did not finish within {timeout_s:.0f} s") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return output.decode(errors="replace")
