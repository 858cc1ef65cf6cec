"""Another process of this machine as it looks from outside, by what the system reports; nothing runs inside it (proc(5))."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine.guard import text_of, threads_of

PROC = Path("/proc")

_CAP_SYS_PTRACE = 1 << 19
# The clock of all threads of a process (clock_getcpuclockid(3), include/linux/posix-timers_types.h).
_CPU_CLOCK = 2

_MINOR = re.compile(r"(?:lib)?python(\d\.\d+)")
_TORCH = re.compile(r"(.*/torch)/lib/libtorch[^/]*\.so")
_TORCH_VERSION = re.compile(r"^__version__\s*=\s*['\"]([^'\"]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OtherProcess:
    """A process that runs.

    Attributes:
        command: Its command line; empty if unknown.
        python, torch: Versions; None if there is none, or it is unknown.
    """

    pid: int
    command: str
    python: str | None
    torch: str | None


def examine(pid: int) -> OtherProcess:
    """Look at a process that is to be watched.

    Raises:
        UsageError: There is no such process, it has ended, or it is this one.
        MeasurementError: It is stopped, or watched by somebody else.
    """
    if pid == os.getpid():
        raise UsageError(f"process {pid} is this very program: it cannot watch itself")
    if not PROC.is_dir():
        return OtherProcess(pid, "", None, None)
    status = _status(pid)
    if status is None:
        raise UsageError(f"no process {pid} (has it ended?)")
    _check_state(pid, status)
    watcher = _watcher(pid, int(status.get("TracerPid", "0")))
    if watcher is not None:
        raise MeasurementError(f"process {pid} is watched already, by process {watcher}: wait until that has ended")
    files = _mapped_files(pid)
    return OtherProcess(pid, shlex.join(_words(pid)), _python_version(pid, files), _torch_version(pid, files))


def cpu_ns(pid: int) -> int | None:
    """CPU time of all threads of a process so far; None if it cannot be read."""
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPU_CLOCK)
    except (AttributeError, OSError):
        return None


def thread_cpu_ns(pid: int) -> dict[int, int]:
    """CPU time of each thread of a process so far (proc(5), ``schedstat``); empty if it cannot be read."""
    fields = {thread: text_of(PROC / f"{pid}/task/{thread}/schedstat").split() for thread in threads_of(pid)}
    return {thread: int(each[0]) for thread, each in fields.items() if each}


def thread_system_ns(pid: int) -> dict[int, int]:
    """CPU time of each thread of a process in the operating system so far (proc(5), ``stat``), in ticks of the clock."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    fields = {
        thread: text_of(PROC / f"{pid}/task/{thread}/stat").rpartition(")")[2].split() for thread in threads_of(pid)
    }
    return {thread: int(each[12]) * tick_ns for thread, each in fields.items() if each}


def waits_in(pid: int, thread: int) -> str:
    """The kernel function in which a thread is blocked (proc(5), ``wchan``); empty or ``0`` if it runs or this is not known."""
    return text_of(PROC / f"{pid}/task/{thread}/wchan")


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread of a process: its number, its state's letter (proc(5)), and who traces it, 0 for nobody."""

    thread: int
    state: str
    tracer: int


def thread_states(pid: int) -> list[ThreadState]:
    """The threads of a process; none if they cannot be read."""
    states = []
    for thread in threads_of(pid):
        status = _status(Path(f"{pid}/task/{thread}"))
        if status:
            states.append(ThreadState(thread, status.get("State", "R")[0], int(status.get("TracerPid", "0"))))
    return states


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    status = _status(pid)
    return not PROC.is_dir() or (status is not None and status.get("State", "R")[0] not in "ZX")


def looks_like_python(pid: int) -> bool:
    """Whether a process has an interpreter mapped."""
    return any(_MINOR.search(file) for file in _mapped_files(pid))


def permission_remedy(pid: int) -> str:
    """The remedy if a process may not be traced."""
    own, other = _status(os.getpid()) or {}, _status(pid) or {}
    owner = other.get("Uid", "").split()[:1]
    traces_all = bool(int(own.get("CapEff", "0"), 16) & _CAP_SYS_PTRACE)
    scope = text_of(PROC / "sys/kernel/yama/ptrace_scope").strip()
    if scope == "3":
        return "Yama forbids tracing until the machine is restarted (kernel.yama.ptrace_scope is 3)"
    if owner and owner != [str(os.geteuid())] and not traces_all:
        return f"it belongs to user {owner[0]}: run this as that user, or as root (sudo)"
    if _mounts(pid) not in (None, _mounts(os.getpid())):
        return "it runs in another container: run this inside that container, or as root on the host"
    if os.geteuid() == 0 and not traces_all:
        return "this container may not trace: start it with `docker run --cap-add SYS_PTRACE`"
    if scope in ("1", "2") and not traces_all:
        return f"Yama forbids it (kernel.yama.ptrace_scope is {scope}): use sudo, or `sudo sysctl kernel.yama.ptrace_scope=0`"
    return "run this as root (sudo); in a container, start that with `docker run --cap-add SYS_PTRACE`"


def _check_state(pid: int, status: Mapping[str, str]) -> None:
    process = int(status.get("Tgid", pid))
    if process != pid:
        raise UsageError(f"{pid} is a thread of process {process}: attach to {process}")
    state = status.get("State", "R")[0]
    if state in "ZX":
        raise UsageError(
            f"process {pid} has ended: it is a zombie that its parent, {status.get('PPid')}, has to collect"
        )
    if state == "T":
        raise MeasurementError(f"process {pid} is stopped: resume it (`kill -CONT {pid}`), then attach")


def _watcher(pid: int, tracer: int) -> str | None:
    """The tracer of a process: a debugger, or py-spy, which detaches between two stacks."""
    if tracer:
        return f"{tracer} ({text_of(PROC / str(tracer) / 'comm').strip() or 'of another container'})"
    for number in sorted(int(path.name) for path in PROC.iterdir() if path.name.isdigit()):
        words = _words(number)
        if any(Path(word).name.startswith("py-spy") for word in words[:2]) and str(pid) in words:
            return f"{number} (py-spy)"
    return None


def _status(pid: int | Path) -> dict[str, str] | None:
    """Fields of ``/proc/PID/status``; None without such a process."""
    lines = text_of(PROC / str(pid) / "status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)} if lines else None


def _words(pid: int) -> list[str]:
    return [word for word in text_of(PROC / str(pid) / "cmdline").split("\0") if word]


def _mapped_files(pid: int) -> list[str]:
    """Distinct files mapped by a process; empty if unreadable."""
    fields = (line.split(maxsplit=5) for line in text_of(PROC / str(pid) / "maps").splitlines())
    return list(dict.fromkeys(field[5] for field in fields if len(field) == 6 and field[5].startswith("/")))


def _python_version(pid: int, files: list[str]) -> str | None:
    """Version of the interpreter: in full from the binary's own text (``PY_VERSION``), else the minor from a file's name."""
    names = [(match[1], file) for file in files if (match := _MINOR.search(Path(file).name))]
    for minor, file in names:
        for version in _texts(_seen_by(pid, file), rf"(?<=[\0/-])({re.escape(minor)}\.\d+(?:(?:a|b|rc)\d+)?\+?)\0"):
            return version
    other = next((match[1] for file in files if (match := _MINOR.search(file))), None)
    return names[0][0] if names else other


def _torch_version(pid: int, files: list[str]) -> str | None:
    for folder in dict.fromkeys(match[1] for file in files if (match := _TORCH.fullmatch(file))):
        version = _TORCH_VERSION.search(text_of(_seen_by(pid, f"{folder}/version.py")))
        if version is not None:
            return version[1]
    return None


def _texts(path: Path, pattern: str) -> Iterator[str]:
    with (
        contextlib.suppress(OSError, ValueError),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        for match in re.finditer(pattern.encode(), content):
            yield match[1].decode()


def _seen_by(pid: int, path: str) -> Path:
    """A path as the process sees it: in a container of its own."""
    return PROC / str(pid) / "root" / path.lstrip("/")


def _mounts(pid: int) -> str | None:
    """The namespace of mounts: a container has one of its own."""
    with contextlib.suppress(OSError):
        return str((PROC / str(pid) / "ns/mnt").readlink())
    return None
