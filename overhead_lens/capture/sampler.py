"""The samples instrument: ``py-spy record --native`` attached to a warmed-up worker."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.errors import MeasurementError

# Each stack pauses the target for more than 1 ms, and it goes on with cold caches: at 1000 Hz it hardly runs in between,
# and code that waits for memory crowds out code that does not. A loop of 1,020 ns in a call of 2,090 ns was given 585 to
# 926 ns at 1000 Hz, 1,012 to 1,025 ns at 250 Hz (docs/accuracy.md).
_LEAST_RATE_HZ = 250

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


def sample(pid: int, sample_count: int, folder: Path, name: str) -> SamplerRun:
    """Take about ``sample_count`` stacks of process ``pid`` at about 250 Hz, native frames and waiting threads included.

    py-spy takes whole seconds only: the rate is what gives the number asked for in the fewest.

    Raises:
        MeasurementError: py-spy is missing, may not attach, or took no sample; the message says which.
    """
    executable = find_sampler()
    if executable is None:
        raise MeasurementError("py-spy is not installed (pip install py-spy)")
    raw = folder / f".{name}.raw"
    duration_s = max(1, sample_count // _LEAST_RATE_HZ)
    rate_hz = -(-sample_count // duration_s)
    command = [executable, "record", "--native", "--idle", "--pid", str(pid), "--rate", str(rate_hz)]
    command += ["--duration", str(duration_s), "--format", "raw", "--output", str(raw)]
    try:
        chatter = _run(command, _START_S + sample_count * _SLOWEST_SAMPLE_S)
        folded = raw.read_text(encoding="utf-8", errors="replace") if raw.exists() else ""
    finally:
        with contextlib.suppress(OSError):
            raw.unlink(missing_ok=True)
    counted = re.search(r"Samples: (\d+) Errors: (\d+)", chatter)
    if counted is None or not folded:
        raise MeasurementError(explain_failure(chatter))
    return SamplerRun(folded, int(counted[1]), int(counted[2]))


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
