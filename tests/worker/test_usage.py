"""What a process says of itself."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import pytest

from overhead_lens.worker import usage
from overhead_lens.worker.usage import Waits, collected_ns, watch_collections

on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="the kernel of Linux says how long a thread waits for a core"
)


@contextmanager
def beside_a_busy_program() -> Iterator[None]:
    """This thread on one core that another program uses all the time."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        # It inherits the core.
        with subprocess.Popen(
            [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
        ) as busy:
            assert busy.stdout is not None
            busy.stdout.readline()
            yield
            busy.kill()
    finally:
        os.sched_setaffinity(0, before)


def spin(seconds: float) -> int:
    """Wall time of a loop that ends after so many seconds, ns."""
    begun_ns = time.perf_counter_ns()
    while time.perf_counter_ns() - begun_ns < 1e9 * seconds:
        pass
    return time.perf_counter_ns() - begun_ns


@on_linux
def test_waiting_for_a_core_is_what_a_thread_neither_ran_nor_slept() -> None:
    with beside_a_busy_program():
        waits = Waits.now()
        used_ns = time.thread_time_ns()
        wall_ns = spin(0.4)
        used_ns = time.thread_time_ns() - used_ns
        waited = waits.during(wall_ns)
    assert waited["delayed_ns"] == pytest.approx(wall_ns - used_ns, abs=0.05 * wall_ns)
    assert waited["delayed_ns"] > 0.25 * wall_ns


@on_linux
def test_sleep_is_no_waiting_for_a_core() -> None:
    waits, begun_ns, used_ns = Waits.now(), time.perf_counter_ns(), time.thread_time_ns()
    time.sleep(0.2)
    apart_ns = time.perf_counter_ns() - begun_ns - (time.thread_time_ns() - used_ns)
    assert waits.during(apart_ns)["delayed_ns"] < 0.5 * apart_ns


@on_linux
def test_a_thread_of_ones_own_may_be_what_has_the_core() -> None:
    ended = threading.Event()
    thread = threading.Thread(target=lambda: [sha256(bytes(10_000_000)) for _ in iter(ended.is_set, True)])
    with beside_a_busy_program():
        thread.start()
        waits = Waits.now()
        waited = waits.during(spin(0.4))
        ended.set()
        thread.join()
    assert waited["delayed_ns"] == 0
    assert waited["contended_ns"] > 0


def test_what_the_kernel_does_not_say_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "_threads", lambda: [2**31 - 1, threading.get_native_id()])
    monkeypatch.setattr(usage, "Path", lambda path: usage_path(path))
    waits = Waits.now()
    assert (waits.own_ns, waits.others_ns) == (0, 0)


class usage_path:  # noqa: N801
    """A file that says less than it should."""

    def __init__(self, _: str) -> None: ...

    def read_text(self, encoding: str) -> str:
        return ""


def test_collections_are_timed_from_when_they_are_watched() -> None:
    before = list(gc.callbacks)
    assert collected_ns() is None
    try:
        watch_collections()
        watch_collections()
        assert len(gc.callbacks) == len(before) + 1
        assert collected_ns() == 0
        begun_ns = time.perf_counter_ns()
        gc.collect()
        most_ns = time.perf_counter_ns() - begun_ns
        once_ns = collected_ns() or 0
        assert 0 < once_ns <= most_ns
        gc.collect()
        assert (collected_ns() or 0) > once_ns
    finally:
        gc.callbacks[:] = before
