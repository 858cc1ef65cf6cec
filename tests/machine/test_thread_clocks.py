"""The CPU clocks of a process's threads, drawn."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from overhead_lens.machine import thread_clocks
from overhead_lens.machine.thread_clocks import ThreadClocks

MS = 1_000_000


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> list[dict[int, int]]:
    """CPU ms of threads, once for each reading; there are 100 ms between two."""
    drawn: list[dict[int, int]] = []
    ticks = iter(range(0, 10_000 * MS, 10 * MS))
    readings = iter(range(0, 10_000 * MS, 100 * MS))
    monkeypatch.setattr(thread_clocks, "time", SimpleNamespace(monotonic_ns=readings.__next__))
    monkeypatch.setattr(
        thread_clocks, "thread_cpu_ns", lambda pid: {thread: ms * MS for thread, ms in drawn.pop(0).items()}
    )
    monkeypatch.setattr(thread_clocks, "thread_system_ns", lambda pid: {1: next(ticks)})
    return drawn


@pytest.mark.parametrize(
    ("spent_ms", "in_turns"),
    [
        ({1: 50, 2: 50}, True),
        ({1: 100, 2: 5}, True),
        ({1: 100, 2: 6}, False),  # some of it at once
        ({1: 90, 2: 2}, False),  # the other one hardly runs
        ({1: 100}, False),
        ({1: 100, 2: 100}, False),
        ({}, False),
    ],
)
def test_threads_that_take_turns(clocks: list[dict[int, int]], spent_ms: dict[int, int], in_turns: bool) -> None:
    clocks += [dict.fromkeys(spent_ms, 7), {thread: 7 + ms for thread, ms in spent_ms.items()}]
    assert ThreadClocks(1).end() is in_turns


def test_periods_add_up(clocks: list[dict[int, int]]) -> None:
    clocks += [{1: 0}, {1: 50, 2: 20}, {1: 300, 2: 20}, {1: 330, 2: 30}, {1: 900}, {1: 1_000}]
    found = ThreadClocks(1)
    assert found.running == {}
    found.end()
    # A thread that has begun since, and a period that did not end.
    assert found.running == {1: 0.5, 2: 0.2}
    assert found.end() is False
    found.begin()
    found.end()
    assert found.running == {1: 0.4, 2: 0.15}
    found.begin()
    found.begin()
    assert found.running == {1: 0.4, 2: 0.15}
    assert found.in_system == {1: 0.1}
