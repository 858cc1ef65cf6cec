from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from overhead_lens.capture.cores import may_stand_back, stand_back, step_forward

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="scheduling policies of Linux")

_TWO_THREADS = (
    "import threading; threading.Thread(target=input).start(); print('started', flush=True); threading.Event().wait()"
)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.readline(); exec(sys.argv[1])", _TWO_THREADS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as started:
        yield started
        started.kill()


def policies(pid: int) -> set[int]:
    return {os.sched_getscheduler(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()}


def test_a_process_stands_back_with_the_threads_it_starts_and_steps_forward_with_all(
    process: subprocess.Popen[str],
) -> None:
    if not may_stand_back():
        pytest.skip("one core, or no right to raise a policy again")
    before = policies(process.pid)
    stand_back(process.pid)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "started\n"
    assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 2
    assert policies(process.pid) == {os.SCHED_IDLE}
    step_forward(process.pid)
    assert policies(process.pid) == before == {os.SCHED_OTHER}


def test_without_the_right_nobody_stands_back(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.sched_getscheduler(0)
    asked: list[int] = []

    def refuse(_: int, policy: int, __: os.sched_param) -> None:
        asked.append(policy)
        if policy == os.SCHED_OTHER:
            raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert not may_stand_back()
    assert asked == [os.SCHED_IDLE, os.SCHED_OTHER]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert not may_stand_back()
    assert asked == [os.SCHED_IDLE, os.SCHED_OTHER]
    monkeypatch.undo()
    assert os.sched_getscheduler(0) == own


def test_a_process_that_is_gone_is_let_be() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    start = time.monotonic()
    stand_back(gone.pid)
    step_forward(gone.pid)
    assert time.monotonic() >= start
