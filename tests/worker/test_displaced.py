"""Calls with displaced caches: what is displaced how often, and what is taken off, by a clock that only the parts move on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from overhead_lens.errors import UsageError
from overhead_lens.instruments.clock.worker import measure_whole_block
from overhead_lens.instruments.samples.record import stacks_per_process
from overhead_lens.target import parse_target
from overhead_lens.units import parse_bytes
from overhead_lens.worker import displaced as displacing
from overhead_lens.worker import workload as workloads
from overhead_lens.worker.displaced import DisplacedWorkload, displaced


class Clock:
    """Time that passes by what is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        self.done: list[str] = []
        monkeypatch.setattr(displacing.time, "perf_counter_ns", lambda: self.now_ns)

    def takes(self, name: str, ns: int) -> None:
        self.done.append(name)
        self.now_ns += ns


def cold(clock: Clock, call_ns: int) -> DisplacedWorkload:
    made = displaced(workloads.load(parse_target("add1"), {}, None), 4096)

    def loop(call: Callable[..., Any], args: object, count: int) -> None:
        clock.takes("loop", 7)
        for _ in range(count):
            clock.takes("call", call_ns)

    return dataclasses.replace(made, loop=loop, displace=lambda: clock.takes("displace", 10**6))  # type: ignore[return-value]


@pytest.mark.parametrize(("count", "empty"), [(1, 4), (16, 4), (40, 10)])
def test_a_call_alone_counts(count: int, empty: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert cold(clock, 300).run(count) == 300 * count
    # Memory is read before every loop, with a call in it or none.
    assert clock.done == ["displace", "loop", "call"] * count + ["displace", "loop"] * empty


def test_a_call_of_no_time_takes_some(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cold(Clock(monkeypatch), 0).run(8) == 1


@pytest.mark.parametrize(
    ("call_ns", "displacing_ns", "calls"),
    # A run of 5 ms of calls takes at most 50 ms with the reading.
    [(0.0, 10**6, 50), (2_000.0, 10**6, 50), (2_000.0, 20_000, 2_500), (500_000.0, 10**6, 10), (2_000.0, 10**8, 1)],
)
def test_reading_makes_no_run_of_minutes(call_ns: float, displacing_ns: int, calls: int) -> None:
    made = displaced(workloads.load(parse_target("add1"), {}, None), 4096)
    assert made.displacing_ns > 0  # type: ignore[attr-defined]
    made = dataclasses.replace(made, displacing_ns=displacing_ns)  # type: ignore[call-arg]
    assert made.calls_within(call_ns, 5_000_000) == calls


def test_calls_that_seem_to_take_no_time_are_counted_by_their_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    made = dataclasses.replace(cold(clock, 0), displacing_ns=10**6)
    row, _ = measure_whole_block(made, 0.0, 5_000_000, 250_000)
    assert row["calls"] == 50


def test_the_call_is_made_and_stays_what_it_was() -> None:
    bare = workloads.load(parse_target("add1"), {}, None)
    calls: list[torch.Tensor] = []
    made = displaced(dataclasses.replace(bare, call=calls.append), 1 << 20)
    assert isinstance(made, DisplacedWorkload)
    assert made.run(5) > 0
    assert [each is bare.args[0] for each in calls] == [True] * 5
    assert displaced(bare, 0) is bare
    # What makes a workload from another keeps the caches displaced.
    assert isinstance(workloads.recompiled(made), DisplacedWorkload)


def test_samples_hold_nothing_of_the_reading() -> None:
    inside = "process 1;run (displaced.py:40);_once_ns (displaced.py:45);measured_loop (overhead_lens/worker/loop.py:3);add1 (a.py:1) 5"
    reading = (
        "process 1;run (displaced.py:40);_once_ns (displaced.py:43);displace (displaced.py:60);memcmp (libc.so.6) 95"
    )
    (stacks,) = stacks_per_process([inside, reading])
    assert [stack.count for stack in stacks] == [5]


@pytest.mark.parametrize(
    ("text", "size"), [("1kB", 1_000), ("2MB", 2_000_000), ("1.5MiB", 1_572_864), ("4096", 4096), ("1 gb", 10**9)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1TB", "2GB", "10", "1e6", "1MB;"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="give 1kB to 1GB, e.g. 512kB, 2MB, 1MiB"):
        parse_bytes(text)
