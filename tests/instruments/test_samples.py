"""When a sampler keeps pace, and which stacks count."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from overhead_lens.instruments.instrument import measure_at_once
from overhead_lens.instruments.samples import record, worker
from overhead_lens.instruments.samples.record import SampleStacks
from overhead_lens.samplers.sampler import SamplerRun
from tests.drawn.speedscope import sequence

CALLS, CALL_NS = 50, 2_000


class Held:
    """A workload whose chunks take so long, one after the other; a clock that goes on with them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, walls_ns: list[int]) -> None:
        self.walls_ns, self.now_ns = list(walls_ns), 0
        self.additions_ns: list[int] = []
        monkeypatch.setattr(worker.time, "perf_counter_ns", lambda: self.now_ns)
        monkeypatch.setattr(worker, "_pass_through_torch", self.additions_ns.append)

    def run(self, count: int) -> int:
        assert count == CALLS
        wall_ns = self.walls_ns.pop(0)
        self.now_ns += wall_ns
        return wall_ns


FREE, PACED, HELD = 100_000, 399_999, 400_000


@pytest.mark.parametrize(
    ("walls_ns", "left"),
    [
        ([FREE, FREE, FREE, HELD], 1),
        ([PACED, PACED, PACED, HELD], 1),
        # A library whose symbols are read late begins it anew.
        ([FREE, FREE, HELD, FREE, HELD, FREE, FREE, PACED, HELD, HELD], 2),
        # A sampler that never keeps pace is taken as it is after two seconds.
        ([2_000_000_000, FREE], 1),
        ([HELD, 1_999_599_999, HELD, FREE], 1),
    ],
)
def test_stacks_count_from_when_the_sampler_keeps_pace(
    monkeypatch: pytest.MonkeyPatch, walls_ns: list[int], left: int
) -> None:
    held: Any = Held(monkeypatch, walls_ns)
    worker.settle(held, CALLS, CALL_NS)
    assert len(held.walls_ns) == left
    assert held.additions_ns == [CALLS * CALL_NS]


def test_additions_end() -> None:
    before_ns = time.perf_counter_ns()
    worker._pass_through_torch(1_000)
    assert time.perf_counter_ns() - before_ns >= 1_000


def test_stacks_of_settling_are_not_kept(tmp_path: Path) -> None:
    frame = "settle (overhead_lens/instruments/samples/worker.py:56)"
    lines = [
        f"main (overhead_lens/worker/serve.py:9);{frame};measured_loop (overhead_lens/worker/loop.py:3) 40",
        f"main (overhead_lens/worker/serve.py:9);{frame} 2",
        "spin (overhead_lens/instruments/samples/worker.py:90);measured_loop (overhead_lens/worker/loop.py:3) 5",
        "measured_loop (overhead_lens/worker/loop.py:3);settle (mine.py:3) 7",
    ]
    samples = SampleStacks()
    samples.add(SamplerRun((sequence("\n".join(lines)),), 54, 3), 1.0)
    assert samples.folded == [f"{lines[2]}\n{lines[3]}\n"]
    assert (samples.sampled.samples, samples.sampled.errors, samples.sampled.reason) == (12, 3, None)


def test_stacks_of_a_loop_that_stood_still_are_one(tmp_path: Path) -> None:
    loop = "spin (overhead_lens/instruments/samples/worker.py:90);measured_loop (overhead_lens/worker/loop.py:3)"
    taken = [f"{loop};f{each % 7} (a.py:1)" for each in range(350)]
    held = [*taken[:100], *(60 * [f"{loop};held (a.py:9)"]), *taken[100:]]
    samples = SampleStacks()
    samples.add(SamplerRun((tuple(held),), 410, 0), per_call=1.0)
    (text,) = samples.folded
    assert text.splitlines()[-1] == f"{loop};held (a.py:9) 1"
    assert samples.sampled.samples == 351
    # A call that takes as long as all of them may have been there.
    samples.add(SamplerRun((tuple(held),), 410, 0), per_call=60.0)
    assert samples.folded[1].splitlines()[-1] == f"{loop};held (a.py:9) 60"


class Interrupted:
    """A worker whose first reply is waited for when Ctrl-C comes."""

    name = "clock-0"

    def __init__(self) -> None:
        self.log: list[str] = []

    def send(self, operation: object, **_: object) -> None:
        self.log.append("send")

    def receive(self, operation: object) -> object:
        self.log.append("receive")
        if self.log.count("receive") == 1:
            raise KeyboardInterrupt
        return SimpleNamespace(since_ns=0)

    def ask(self, operation: object, **_: object) -> object:
        self.log.append("ask")
        return SimpleNamespace(pid=7)


class Ready(ExitStack):
    """A sampler that has begun."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def wait_until_begun(self) -> None:
        pass


def test_an_interrupted_worker_is_stopped_after_its_reply(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(record, "Sampling", Ready)
    target: Any = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        measure_at_once([SampleStacks().sample(tmp_path, target, 1, threads=False)])
    assert target.log == ["ask", "send", "receive", "receive", "ask"]
