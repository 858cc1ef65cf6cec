from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from overhead_lens.capture import turns
from overhead_lens.capture.turns import short_turns

ATTRIBUTES = struct.Struct("=IIQiIQQQ")
SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}


def turn_ns(pid: int) -> int:
    """Length of a turn that a thread asks for, by sched_getattr(2)."""
    buffer = ctypes.create_string_buffer(ATTRIBUTES.size)
    number = SCHED_GETATTR.get(platform.machine())
    if number is None or ctypes.CDLL(None).syscall(number, pid, buffer, ATTRIBUTES.size, 0) != 0:
        pytest.skip("sched_getattr(2) is not there")
    return int(ATTRIBUTES.unpack(buffer.raw)[5])


def own_threads() -> dict[int, set[int]]:
    return {int(each.name): os.sched_getaffinity(int(each.name)) for each in Path("/proc/self/task").iterdir()}


@pytest.fixture
def target() -> Iterator[int]:
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be kept on a core here")
def test_target_asks_for_short_turns_and_a_thread_wakes_up_on_the_core(target: int) -> None:
    core = min(os.sched_getaffinity(0))
    before_ns, before = turn_ns(target), own_threads()
    own = os.sched_getaffinity(0)
    if before_ns == 0:
        pytest.skip("this kernel knows no turns of a length that is asked for (Linux 6.12)")
    os.setpriority(os.PRIO_PROCESS, target, 3)
    with short_turns(target, core):
        assert turn_ns(target) == turns._TURN_NS != before_ns
        (waking,) = set(own_threads()) - set(before)
        until(lambda: own_threads()[waking] == {core})
        woken = voluntary_switches(waking)
        threading.Event().wait(0.2)
        assert voluntary_switches(waking) - woken > 20
    assert turn_ns(target) == before_ns
    assert os.getpriority(os.PRIO_PROCESS, target) == 3
    assert os.sched_getaffinity(0) == own
    until(lambda: waking not in own_threads())


def until(holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        threading.Event().wait(0.01)
    pytest.fail("it did not come to hold")


def voluntary_switches(thread: int) -> int:
    lines = Path(f"/proc/self/task/{thread}/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("voluntary_ctxt_switches")))


def test_a_process_that_is_gone_and_a_core_that_is_not_there_are_left_out() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    before = threading.active_count()
    with short_turns(process.pid, 10_000):
        pass
    assert threading.active_count() == before


def test_a_machine_whose_call_number_is_not_known_is_left_alone(target: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before_ns = turn_ns(target)
    monkeypatch.setattr(turns, "_SCHED_SETATTR", {})
    with short_turns(target, min(os.sched_getaffinity(0))):
        assert turn_ns(target) == before_ns
