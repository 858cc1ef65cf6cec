"""Tests of what acts in a program's main thread."""

from __future__ import annotations

import threading
import time

import pytest

from overhead_lens import torch_profiler
from overhead_lens.torch_profiler import in_main_thread


def _engine_run_backward(seconds: float, begun: threading.Event) -> int:
    """Run Python within what looks like a backward pass."""
    begun.set()
    end_s, turns = time.monotonic() + seconds, 0
    while time.monotonic() < end_s:
        time.sleep(0)
        turns += 1
    return turns


def test_a_backward_pass_is_seldom_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, begun = [], threading.Event()
    is_in_backward = torch_profiler.is_in_backward

    def look(frame: object) -> bool:
        looks.append(is_in_backward(frame))  # type: ignore[arg-type]
        return looks[-1]

    def act() -> None:
        begun.wait()
        in_main_thread(lambda: looks.append(True), lambda: False)

    monkeypatch.setattr(torch_profiler, "is_in_backward", look)
    thread = threading.Thread(target=act)
    thread.start()
    _engine_run_backward(0.2, begun)
    while thread.is_alive():
        thread.join(0.001)
    # Two every 10 ms, and at most two afterwards; then the action.
    assert looks[0]
    assert looks[-2:] == [False, True]
    assert len(looks) <= 45


def test_an_action_is_requested_again_while_too_many_wait() -> None:
    done: list[int] = []
    gate = threading.Event()

    def act(number: int) -> None:
        gate.wait()
        in_main_thread(lambda: done.append(number), lambda: False)

    # CPython's queue, from which the main thread takes none while it sleeps, has 32 places (300 since 3.13).
    threads = [threading.Thread(target=act, args=(number,), daemon=True) for number in range(400)]
    for thread in threads:
        thread.start()
    gate.set()
    time.sleep(0.3)
    end_s = time.monotonic() + 5
    while len(done) < len(threads) and time.monotonic() < end_s:
        time.sleep(0.001)
    assert sorted(done) == list(range(400))
