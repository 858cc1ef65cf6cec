"""Commands whose scenario hangs in the middle of a call, and the workers that they leave or do not leave."""

from __future__ import annotations

import contextlib
import os
import queue
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from overhead_lens.machine.operations import Operation
from overhead_lens.machine.process import Worker
from tests.cli.run import scenario
from tests.worker.warm import COMMANDS, fork

ROOT = Path(__file__).resolve().parents[2]


class Started:
    """A running command; its output goes to temporary files."""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self._said = [tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2)]
        with open(os.devnull, encoding="utf-8") as nothing:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self._process = fork(words, [nothing, *self._said], folder, environment, COMMANDS)
        self.pid, self.send_signal = self._process.pid, self._process.send_signal

    def ended(self) -> tuple[int, str, str]:
        """Wait for its end; returns exit code, stdout and stderr."""
        code = self._process.wait(180)
        for each in self._said:
            each.seek(0)
        output, errors = (each.read() for each in self._said)
        return code, output, errors


def start(
    folder: Path, command: str, body: str, *more: str, program: Sequence[str] = ("-m", "overhead_lens")
) -> Started:
    """A command on a scenario with that body, in a process group of its own as a shell would start it."""
    return Started([*program, command, str(scenario(folder, body=body)), "-q", *more], folder)


# The program as it is, but that its workers are a stand-in.
_STANDING_IN = """
from pathlib import Path
from overhead_lens.__main__ import main
from overhead_lens.machine import process
from tests.cli import hanging
process._WORKER = Path(hanging.__file__).with_name("worker") / "serve.py"
"""
STANDING_IN = ("-c", f"{_STANDING_IN}main()")
# Nor is waited for what sleeps.
IMPATIENT = ("-c", f"{_STANDING_IN}with hanging.impatient(Path.cwd()): main()")

SLEEP = "import time; open(f'asleep-{os.getpid()}', 'w').close(); time.sleep(600)"


# A worker's description of the scenario.
LOADED = {
    **{"kind": "scenario", "scenario": "tiny", "variant": "total", "device": "cpu", "summary": "", "params": {}},
    **{"work": {}, "work_known": False, "compiles": False},
}
SLEEP_AFTER_LOADING = f"""
import json
print(json.dumps({{"ok": {LOADED}}}), flush=True)
while not sys.stdin.readline().count("warm_up"):
    print('{{"ok": {{}}}}', flush=True)
{SLEEP}
"""


def start_standing_in(
    folder: Path, command: str, at_first: str, *more: str, program: Sequence[str] = STANDING_IN
) -> Started:
    """A command whose workers do ``at_first`` when they are to load the scenario."""
    with mock.patch.dict(os.environ, {"AT_FIRST": at_first}):
        return start(folder, command, "", *more, program=program)


def hang(at_call: int) -> str:
    """A body that leaves a file and sleeps from its ``at_call``-th call on: the first is the check, the rest warm up."""
    return (
        "import os, time; count = total.__dict__['count'] = total.__dict__.get('count', 0) + 1\n"
        f"    if count >= {at_call}: {SLEEP}"
    )


@contextlib.contextmanager
def impatient(folder: Path) -> Iterator[None]:
    """The limit of a step is over as soon as its worker has left its file, ``asleep-PID``, in the folder."""
    wait = Worker.next_reply

    def get(*, timeout: float) -> str:
        raise queue.Empty

    def next_reply(worker: Worker, operation: Operation[Any]) -> str:
        mark = folder / f"asleep-{worker.pid}"
        while not mark.exists() and worker._replies.empty():
            time.sleep(0.002)
        if mark.exists():
            worker._replies = SimpleNamespace(get=get, put=lambda line: None)  # type: ignore[assignment]
        return wait(worker, operation)

    with mock.patch.object(Worker, "next_reply", next_reply):
        yield


def asleep(folder: Path, count: int) -> list[int]:
    """Wait until that many workers sleep in the middle of their call; returns their process ids."""
    _wait_for(lambda: len(_marks(folder)) >= count, f"{count} workers did not reach their call")
    return [int(mark.name.removeprefix("asleep-")) for mark in _marks(folder)]


def wait_until_all_sleep(folder: Path, pid: int, least: int) -> None:
    """Wait until every worker of a process sleeps in the middle of its call; more may still be started."""
    _wait_for(
        lambda: (
            {int(mark.name.removeprefix("asleep-")) for mark in _marks(folder)} == set(workers_of(pid))
            and len(_marks(folder)) >= least
        ),
        f"workers of {pid} did not reach their call",
    )


def wait_until_gone(pid: int) -> None:
    """Wait until no worker of a process is left."""
    _wait_for(lambda: not workers_of(pid), f"workers of {pid} were not gone")


def workers_of(pid: int) -> list[int]:
    """Workers of a process, which is their argument (proc(5))."""
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [each for each in pids if _is_worker_of(_command_line(each), pid)]


def _is_worker_of(words: list[str], pid: int) -> bool:
    return len(words) > 2 and words[1].endswith("worker/serve.py") and words[2] == str(pid)


def _marks(folder: Path) -> list[Path]:
    return list(folder.glob("asleep-*"))


def _command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _wait_for(condition: Callable[[], object], what: str) -> None:
    for _ in range(1_800):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"{what} within three minutes")
