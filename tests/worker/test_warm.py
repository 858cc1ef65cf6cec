"""Forked workers are what started ones are: whose children, where, under what variables, and how they end."""

from __future__ import annotations

import os
import signal
import socket
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.operations import DESCRIBE_RUNTIME, LOAD
from overhead_lens.machine.process import Worker
from overhead_lens.target import Target
from tests.cli.run import inside, scenario
from tests.worker import warm
from tests.worker.forking import SERVE

pytestmark = [pytest.mark.measures, pytest.mark.skipif(sys.platform != "linux", reason="subreapers are Linux's")]

BODY = (
    "import os, sys; print([os.getppid(), os.getpid() == os.getsid(0), os.getcwd(), sorted(os.sched_getaffinity(0)),"
    " os.environ.get('SOME'), os.environ.get('GONE'), 'OVERHEAD_LENS_LAYOUT' in os.environ, sys.argv, len(os.listdir('/proc/self/fd'))])"
)

ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def seen(folder: Path, variables: dict[str, str]) -> tuple[bool, str]:
    """Whether a worker was forked, and what its call printed of where it is."""
    path = scenario(folder, BODY)
    log = folder / "log"
    with inside(folder), Worker("clock-0", log, 120.0, variables=ONE_THREAD | variables) as worker:
        worker.ask(LOAD, target=Target(str(path), path).to_json(), params={}, compile_options=None)
        command = Path(f"/proc/{worker.pid}/cmdline").read_text().split("\0")
    assert not Path(f"/proc/{worker.pid}").exists()
    return command[1] != str(SERVE), log.read_text()


def test_it_is_where_a_started_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONE", "1")
    assert seen(tmp_path, {})[0]
    # What has changed since there is a process to fork from.
    monkeypatch.delenv("GONE")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        forked, there = seen(tmp_path, {"SOME": "thing", "OVERHEAD_LENS_LAYOUT": "fixed", "PYTHONHASHSEED": "3"})
    finally:
        os.sched_setaffinity(0, before)
    started, same = seen(tmp_path, {"SOME": "thing", "LD_BIND_NOW": "1"})
    assert (forked, started) == (True, False)
    words = [os.getpid(), True, str(tmp_path), [min(before)], "thing", None, False, [str(SERVE), str(os.getpid())]]
    assert there.startswith(f"{words}"[:-1])
    words[3] = sorted(before)
    assert same.startswith(f"{words}"[:-1])
    # No file of the process that forked it is open in it.
    assert there.splitlines()[0].split()[-1] == same.splitlines()[0].split()[-1]


@pytest.mark.parametrize(
    ("python", "launcher", "variables", "forked"),
    [
        (sys.executable, [], {"SOME": "thing", "OVERHEAD_LENS_LAYOUT": "fixed", "PYTHONHASHSEED": "3"}, True),
        (sys.executable, [], {"OMP_NUM_THREADS": "3", "PYTHONPATH": "somewhere"}, True),
        (sys.executable, ["valgrind"], {}, False),
        ("python", [], {}, False),
        *((sys.executable, [], {name: "1"}, False) for name in ("OMP_WAIT_POLICY", "PYTHONMALLOC", "LD_PRELOAD")),
        *((sys.executable, [], {name: "1"}, False) for name in ("TORCH_LOGS", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES")),
    ],
)
def test_what_acts_at_a_start_takes_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    python: str,
    launcher: list[str],
    variables: dict[str, str],
    forked: bool,
) -> None:
    ways: list[bool] = []

    def end(how: bool) -> None:
        ways.append(how)
        raise OSError(how)

    monkeypatch.setattr(warm, "_cold", lambda *_: end(False))
    monkeypatch.setattr(warm, "_forked", lambda *_: end(True))
    with pytest.raises(MeasurementError, match="could not be started"):
        Worker("clock-0", tmp_path / "log", 120.0, python, variables, launcher)
    assert ways == [forked]


READY = "'torch._inductor.compile_fx' in sys.modules"


def test_threads_and_modules_are_what_is_asked_for_and_the_compiler_is_ready(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    body = f"import beside, sys, torch; print(beside.VALUE, torch.get_num_threads(), sys.path[1], {READY})"
    path = scenario(tmp_path, body)
    variables = {"PYTHONPATH": str(tmp_path)} | ONE_THREAD
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    path = path.rename(folder / "tiny.py")
    with Worker("clock-0", tmp_path / "log", 120.0, variables=variables) as worker:
        worker.ask(LOAD, target=Target(str(path), path).to_json(), params={}, compile_options=None)
        assert Path(f"/proc/{worker.pid}/cmdline").read_text().split("\0")[1] != str(SERVE)
    assert (tmp_path / "log").read_text() == f"7 1 {tmp_path} True\n"


def test_its_death_is_told(tmp_path: Path) -> None:
    with Worker("clock-0", tmp_path / "log", 120.0, variables=ONE_THREAD) as worker:
        assert worker.ask(DESCRIBE_RUNTIME)
        os.kill(worker.pid, signal.SIGSEGV)
        with pytest.raises(MeasurementError, match="^clock-0 was killed by signal SIGSEGV during 'describe runtime'$"):
            worker.ask(DESCRIBE_RUNTIME)


def test_an_interrupted_start_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    send = socket.send_fds

    def interrupted(*arguments: Any) -> None:
        send(*arguments)
        raise KeyboardInterrupt

    # The process that would fork ends: it is none that other tests need.
    monkeypatch.setattr(warm, "_parent", cache(warm._parent.__wrapped__))
    monkeypatch.setattr(socket, "send_fds", interrupted)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as seen:
        with os.fdopen(writing, "wb") as output, pytest.raises(KeyboardInterrupt):
            warm._start([sys.executable, str(SERVE), str(os.getpid())], os.environ | ONE_THREAD, output, warm.TORCH)
        # Whoever still has it keeps the pipe open.
        assert seen.read() == b""
    assert warm._parents[-1].wait(60) == 0
