"""Has an unprepared process record itself with torch.profiler: its main thread runs ``program/injected.py`` (PEP 768)."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine.other_process import OtherProcess, runs

_INJECTED = [Path(__file__).parents[2] / name for name in ("torch_profiler.py", "program/injected.py")]
_PROC = Path("/proc")
_STATES = ("starting", "recording", "finished")
_ANSWER_S, _START_S, _WRITE_S, _LOOK_S = 10.0, 60.0, 120.0, 0.02

# Raises nothing in the program, and defines nothing there.
_SCRIPT = """\
try:
    _space = {{"__name__": "overhead-lens"}}
    for _source in {sources!r}:
        exec(_source, _space)
    _space["begin"](*{arguments!r})
except BaseException as _error:
    with open({answer!r}, "w") as _file:
        _file.write(repr(_error))
"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What ends a recording: its length, calls of optimizers, or the growth of the process's memory."""

    seconds: float = 1.0
    steps: int = 20
    grown_bytes: int = 1 << 28


def require_injection(process: OtherProcess) -> None:
    """Refuse what cannot be injected into.

    Raises:
        UsageError: This Python or the process's has no remote debugging, or they differ.
    """
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if not hasattr(sys, "remote_exec"):
        raise UsageError(f"--trace needs Python 3.14 or newer in both processes; this one runs Python {here}")
    if (process.python or "").split(".")[:2] != here.split("."):
        theirs = f"Python {process.python}" if process.python else "an unknown one"
        raise UsageError(
            f"--trace needs the same Python in both processes: this one runs Python {here}, process {process.pid} {theirs}"
        )


def inject(process: OtherProcess, bounds: Bounds, target: Path, interrupted: Event) -> None:
    """Record a process for a moment and write the trace to ``target``.

    Raises:
        MeasurementError: There is no trace; the message says why.
    """
    import fcntl

    pid = process.pid
    try:
        folder = Path(tempfile.mkdtemp(prefix="overhead-lens-", dir=_root(pid) / "tmp"))
    except OSError as error:
        raise _untraced(pid, error) from error
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            _ask(pid, folder, _seen_there(folder, pid), bounds)
        except (OSError, RuntimeError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise _untraced(pid, error) from error
        for state, limit_s in zip(_STATES, (_ANSWER_S, _START_S, bounds.seconds + _WRITE_S), strict=True):
            _await(pid, folder, state, limit_s, interrupted)
        shutil.move(folder / "trace.json", target)
    # What has not finished finds the lock free, and removes the folder.
    shutil.rmtree(folder, ignore_errors=True)


def _root(pid: int) -> Path:
    """The root of the process's own view of the file system."""
    return _PROC / str(pid) / "root"


def _seen_there(folder: Path, pid: int) -> str:
    """The process's own path of a folder below its root."""
    return f"/{folder.relative_to(_root(pid))}"


def _ask(pid: int, folder: Path, there: str, bounds: Bounds) -> None:
    """Have the main thread run the script, whose folder is ``there`` for the process."""
    sources = [path.read_text(encoding="utf-8") for path in _INJECTED]
    arguments = (there, bounds.seconds, bounds.steps, bounds.grown_bytes)
    script = folder / "begin.py"
    script.write_text(_SCRIPT.format(sources=sources, arguments=arguments, answer=f"{there}/answer"), encoding="utf-8")
    owner = (_PROC / str(pid)).stat()
    if owner.st_uid != os.geteuid():
        for path in (folder, *folder.iterdir()):
            os.chown(path, owner.st_uid, owner.st_gid)
    sys.remote_exec(pid, f"{there}/{script.name}")  # type: ignore[attr-defined]


def _await(pid: int, folder: Path, state: str, limit_s: float, interrupted: Event) -> None:
    """Return when the process has reached ``state`` or is past it."""
    begun_s = time.monotonic()
    while True:
        answer = ""
        with contextlib.suppress(OSError):
            answer = (folder / "answer").read_text(encoding="utf-8")
        if answer and answer not in _STATES:
            shutil.rmtree(folder, ignore_errors=True)
            raise _untraced(pid, answer)
        if answer and _STATES.index(answer) >= _STATES.index(state):
            return
        if not runs(pid):
            shutil.rmtree(folder, ignore_errors=True)
            raise _untraced(pid, "it has ended")
        if interrupted.wait(_LOOK_S):
            raise MeasurementError("no trace: interrupted; recording ends by itself")
        if time.monotonic() - begun_s > limit_s:
            later = "; what was asked of it removes itself when the thread runs again"
            raise _untraced(pid, f"its main thread did not answer within {limit_s:g} s{later}")


def _untraced(pid: int, reason: object) -> MeasurementError:
    return MeasurementError(f"process {pid} cannot be traced: {reason}")
