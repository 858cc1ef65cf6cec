"""Workers that are forked from a process that has imported torch: importing it takes most of what a short recording does.

What a process can be given only at its start, such as an interpreter or OpenMP's variables, takes one that is started as ever.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO
from unittest import mock

from overhead_lens.machine import process
from tests.worker.forking import SERVE

_FORKING = Path(__file__).with_name("forking.py")
_SET_CHILD_SUBREAPER = 36

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
)
# All that are forked from one process have the same hashes and addresses; where modules are found can be changed.
_AFTER_ALL = ("PYTHONHASHSEED", "PYTHONPATH")
# Each value of it has a process of its own to fork from.
_THREADS = "OMP_NUM_THREADS"


@contextlib.contextmanager
def warm_workers() -> Iterator[None]:
    """Fork every worker that can be forked, on Linux."""
    if sys.platform != "linux":
        yield
        return
    with mock.patch.object(process, "_start", _start):
        yield


class Forked:
    """The methods of ``subprocess.Popen`` that a worker takes, for a child that another process has forked."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str]) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self._code: int | None = None

    def send_signal(self, number: int) -> None:
        if self._code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while self._code is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self._code = os.waitstatus_to_exitcode(status)
            elif end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
            else:
                time.sleep(0.001)
        return self._code


_cold = process._start
_parents: list[subprocess.Popen[bytes]] = []


def _start(command: Sequence[str], environment: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[str]:
    here, there = _acting(os.environ), _acting(environment)
    if list(command) == [sys.executable, str(SERVE), str(os.getpid())] and {**here, _THREADS: ""} == {
        **there,
        _THREADS: "",
    }:
        return _forked(environment, output)  # type: ignore[return-value]
    return _cold(command, environment, output)


def _acting(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that act when a process starts or torch is imported."""
    return {key: text for key, text in environment.items() if key.startswith(_AT_START) and key not in _AFTER_ALL}


def _forked(environment: Mapping[str, str], output: IO[bytes]) -> Forked:
    channel = _parent(tuple(sorted(_acting(environment).items())))
    request = {
        "environment": {key: text for key, text in environment.items() if key != "OVERHEAD_LENS_LAYOUT"},
        "folder": str(Path.cwd()),
        "cores": sorted(os.sched_getaffinity(0)),
        "parent": os.getpid(),
    }
    (requests, stdin), (stdout, replies) = os.pipe(), os.pipe()
    ends = os.fdopen(stdin, "w", encoding="utf-8"), os.fdopen(stdout, encoding="utf-8")
    try:
        with _adopting():
            socket.send_fds(channel, [json.dumps(request).encode()], [requests, replies, output.fileno()])
            pid = int(channel.recv(100))
    except BaseException:
        # Interrupted: the answer that is on its way would be taken for that to the next request.
        channel.close()
        _parent.cache_clear()
        for end in ends:
            end.close()
        raise
    finally:
        os.close(requests)
        os.close(replies)
    return Forked(pid, *ends)


@cache
def _parent(acting: tuple[tuple[str, str], ...]) -> socket.socket:
    """The socket of a process that forks, under the variables that act at its start; it ends with this process."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        command = [sys.executable, str(_FORKING), str(its.fileno())]
        quiet = subprocess.DEVNULL
        _parents.append(
            subprocess.Popen(
                command,
                pass_fds=[its.fileno()],
                stdin=quiet,
                stdout=quiet,
                env={**os.environ, **dict(acting)},
                start_new_session=True,
            )
        )
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
