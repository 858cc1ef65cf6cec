"""Checks what the instruments need of this machine, by trying it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.errors import OverheadLensError
from overhead_lens.machine.operations import DESCRIBE_RUNTIME
from overhead_lens.machine.process import Worker
from overhead_lens.samplers.py_spy import NO_NATIVE_FRAMES, explain_failure, find_sampler

_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
# It lets process ``pid``, which is not its child, attach (prctl(2), PR_SET_PTRACER).
_SLEEPER = """import ctypes, sys, time
if sys.platform == 'linux': ctypes.CDLL(None).prctl(0x59616D61, {pid}, 0, 0, 0)
def overhead_lens_probe():
    print(flush=True)
    time.sleep(90)
overhead_lens_probe()
"""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement; ``without`` says what is lost, ``remedy`` how to get it."""

    name: str
    available: bool
    detail: str
    without: str
    remedy: str


def examine() -> list[Requirement]:
    """Check every requirement."""
    runtime = _runtime()
    return [_torch(runtime), _sampling(), _compiler(), _valgrind(), _browser(), _gpu(runtime)]


def _runtime() -> dict[str, object] | str:
    try:
        with tempfile.TemporaryDirectory() as folder, Worker("probe", Path(folder, "log"), 120.0) as worker:
            return worker.ask(DESCRIBE_RUNTIME)
    except OverheadLensError as error:
        return str(error)


def _torch(runtime: dict[str, object] | str) -> Requirement:
    without, remedy = "nothing can be profiled", "pip install torch"
    if isinstance(runtime, str):
        return Requirement("torch", False, runtime, without, remedy)
    detail = f"torch {runtime['torch']}, Python {runtime['python']}, {runtime['threads']} threads"
    return Requirement("torch", True, detail, without, remedy)


def _sampling() -> Requirement:
    """Attach py-spy to a process that is not its child, as a recording does."""
    without, remedy = "budgets rest on the corrected trace (evidence: trace)", "pip install py-spy"
    executable = find_sampler()
    if executable is None:
        return Requirement("samples", False, "py-spy is not installed", without, remedy)
    program = _SLEEPER.format(pid=os.getpid())
    target = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        # py-spy refuses an interpreter that is still starting.
        assert target.stdout is not None
        target.stdout.readline()
        done = subprocess.run(
            [executable, "dump", "--native", "--pid", str(target.pid)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Requirement("samples", False, f"py-spy cannot run: {error}", without, remedy)
    finally:
        target.kill()
        target.communicate()
    if done.returncode == 0:
        return Requirement("samples", True, f"py-spy may attach ({executable})", without, remedy)
    reason = explain_failure(done.stderr + done.stdout)
    if reason == NO_NATIVE_FRAMES:
        return Requirement("samples", False, reason, without, "Measure on Linux")
    remedy = "Run as root, give the container --cap-add=SYS_PTRACE"
    if _YAMA.exists():
        remedy += f", or set {_YAMA} to 1 or 0 (it is {_YAMA.read_text().strip()})"
    return Requirement("samples", False, reason, without, remedy)


def _compiler() -> Requirement:
    names = [os.environ.get("CXX", ""), "g++", "clang++"]
    path = next((path for name in names if name and (path := shutil.which(name))), None)
    remedy = "Install g++ or clang++ (apt-get install g++), or set CXX"
    detail = path or "no g++ or clang++"
    return Requirement("C++ compiler", path is not None, detail, "--compile cannot work on a CPU", remedy)


def _valgrind() -> Requirement:
    """Run callgrind: a valgrind may lack its files."""
    without, remedy = "no instruction counts (profile --instructions)", "Install it (apt-get install valgrind)"
    path = shutil.which("valgrind")
    if path is None:
        return Requirement("valgrind", False, "no valgrind", without, remedy)
    command = [path, "--tool=callgrind", "--callgrind-out-file=/dev/null", "--quiet", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Requirement("valgrind", False, f"valgrind cannot run: {error}", without, remedy)
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines()
        return Requirement("valgrind", False, lines[0] if lines else f"{path} fails", without, remedy)
    return Requirement("valgrind", True, f"{path}: instruction counts (profile --instructions)", without, remedy)


def _browser() -> Requirement:
    names = ("chromium", "chromium-browser", "google-chrome", "firefox")
    path = next((path for name in names if (path := shutil.which(name))), None)
    remedy = "Any browser on this machine will do; captures hold trace.pftrace for https://ui.perfetto.dev"
    return Requirement("browser", path is not None, path or "none found", "`open` cannot show a trace here", remedy)


def _gpu(runtime: dict[str, object] | str) -> Requirement:
    device = None if isinstance(runtime, str) else runtime["gpu"]
    remedy = "A CUDA or ROCm build of torch on a machine that has one"
    return Requirement("GPU", bool(device), str(device or "torch sees none"), "only --device cpu", remedy)
