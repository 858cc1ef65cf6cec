"""Programs that are forked from a process that has imported torch: importing it takes most of what a short recording does.

What a process can be given only at its start, such as an interpreter or OpenMP's variables, takes one that is started as ever.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import IO, Any
from unittest import mock

from overhead_lens.machine import process
from tests.worker.forking import COMPILER, FORKING, SERVE, THREADS

_FORKING = Path(__file__).with_name("forking.py")
_SET_CHILD_SUBREAPER = 36

# What any program with torch needs, what workers need also to compile, and the command line up to a report of a run.
TORCH = ("overhead_lens.worker.operations",)
WORKERS = (*TORCH, COMPILER)
COMMANDS = ("tests.worker.commands",)

_AT_START = (
    "PYTHON",
    "LD_",
    "GLIBC_",
    "MALLOC_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "OPENBLAS_",
    "TORCH",
    "PYTORCH_",
    "CUDA_",
    "CXX",
)
# All that are forked from one process have the same hashes and addresses; where modules are found, and where Inductor keeps its
# code, can be changed.
_AFTER_ALL = ("PYTHONHASHSEED", "PYTHONPATH", "TORCHINDUCTOR_CACHE_DIR")


@contextlib.contextmanager
def warm_workers(modules: tuple[str, ...] = WORKERS) -> Iterator[None]:
    """Fork every worker that can be forked, on Linux, from a process that has imported the modules."""
    if sys.platform != "linux":
        yield
        return
    with mock.patch.object(process, "_start", partial(_start, modules=modules)):
        yield


class Forked:
    """The methods of ``subprocess.Popen`` that a worker or a program takes, for a child that another process has forked."""

    def __init__(self, pid: int, stdin: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, None
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def poll(self) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.poll() is None:
            with open(os.pidfd_open(self.pid), "rb") as ending:
                select.select([ending], [], [], timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired("a forked program", timeout or 0.0)
        return code


def fork(
    arguments: Sequence[object],
    streams: Sequence[IO[Any]],
    cwd: Path,
    env: Mapping[str, str] = os.environ,
    modules: tuple[str, ...] = TORCH,
) -> Forked | subprocess.Popen[bytes]:
    """What Python would start with these arguments: ``program/start.py`` with its own, ``-m`` and a module, or ``-c`` and code."""
    words = [*map(str, arguments)]
    if sys.platform != "linux":
        return subprocess.Popen([sys.executable, *words], 0, None, *streams, cwd=cwd, env=env)
    return Forked(_forked(words, env, [each.fileno() for each in streams], cwd, modules))


def ended(
    *arguments: object, cwd: Path, env: Mapping[str, str] = os.environ, modules: tuple[str, ...] = TORCH, said: str = ""
) -> subprocess.CompletedProcess[str]:
    """The same to its end, with ``said`` on its stdin."""
    with ExitStack() as stack:
        text = partial(tempfile.TemporaryFile, "w+", newline="", encoding="utf-8", errors="surrogateescape")
        streams = [stack.enter_context(text()) for _ in range(3)]
        streams[0].write(said)
        for each in streams:
            each.seek(0)
        code = fork(arguments, streams, cwd, env, modules).wait(240)
        for each in streams:
            each.seek(0)
        return subprocess.CompletedProcess([*arguments], code, streams[1].read(), streams[2].read())


_cold = process._start
_parents: list[subprocess.Popen[bytes]] = []


def _start(
    command: Sequence[str], environment: Mapping[str, str], output: IO[bytes], modules: tuple[str, ...] = WORKERS
) -> subprocess.Popen[str]:
    same = _acting({**os.environ, THREADS: ""}) == _acting({**environment, THREADS: ""})
    if same and list(command) == [sys.executable, str(SERVE), str(os.getpid())]:
        return piped(command[1:], environment, output, modules)  # type: ignore[return-value]
    return _cold(command, environment, output)


def _acting(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that act when a process starts or torch is imported."""
    return {key: text for key, text in environment.items() if key.startswith(_AT_START) and key not in _AFTER_ALL}


def piped(
    arguments: Sequence[str], environment: Mapping[str, str], output: IO[bytes], modules: tuple[str, ...] = TORCH
) -> Forked:
    """The same with pipes for its stdin and stdout, and its stderr in a file."""
    (requests, stdin), (stdout, replies) = os.pipe(), os.pipe()
    ends = os.fdopen(stdin, "w", encoding="utf-8"), os.fdopen(stdout, encoding="utf-8")
    try:
        return Forked(_forked(arguments, environment, [requests, replies, output.fileno()], Path.cwd(), modules), *ends)
    except BaseException:
        for end in ends:
            end.close()
        raise
    finally:
        os.close(requests)
        os.close(replies)


def _forked(
    arguments: Sequence[str], environment: Mapping[str, str], streams: list[int], folder: Path, modules: tuple[str, ...]
) -> int:
    acting = _acting(environment)
    if modules == WORKERS and acting.get(THREADS, "").isdigit():
        acting = {**acting, THREADS: os.environ.get(THREADS, "")}  # torch is told how many in the program
    channel = _parent(tuple(sorted(each for each in acting.items() if each[1])), modules)
    request = {
        "arguments": arguments,
        "environment": {key: text for key, text in environment.items() if key != "OVERHEAD_LENS_LAYOUT"},
        "folder": str(folder),
        "cores": sorted(os.sched_getaffinity(0)),
        "parent": os.getpid(),
    }
    try:
        with _adopting():
            socket.send_fds(channel, [json.dumps(request).encode()], streams)
            return int(channel.recv(100))
    except BaseException:
        # Interrupted: the answer that is on its way would be taken for that to the next request.
        channel.close()
        _parent.cache_clear()
        raise


_AT_OWN_START = tuple(sorted(each for each in _acting(os.environ).items() if each[1]))


@cache
def _parent(acting: tuple[tuple[str, str], ...], modules: tuple[str, ...]) -> socket.socket:
    """The socket of a process that has imported modules and forks, under the variables that act at its start; it ends with this one."""
    if (modules, acting) == (WORKERS, _AT_OWN_START) and FORKING in sys._xoptions:
        return sys._xoptions.pop(FORKING)  # type: ignore[return-value]
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command, environment = [str(_FORKING), *modules], {**os.environ, **dict(acting)}
    with its, open(os.devnull, "wb") as nothing:
        if base := next((each for each in (WORKERS, TORCH) if modules[: len(each)] == each != modules), None):
            # Its process has imported the first of them.
            _forked(command, environment, [its.fileno(), nothing.fileno(), 2], Path.cwd(), base)
        else:
            command = [sys.executable, *command]
            started = subprocess.Popen(command, stdin=its, stdout=nothing, env=environment, start_new_session=True)
            _parents.append(started)
    return ours


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Become the parent of processes whose own parent ends meanwhile (prctl(2))."""
    call = ctypes.CDLL(None).prctl
    call(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        call(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
