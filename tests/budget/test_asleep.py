"""Time asleep by stacks, bounded by a thread's CPU clock."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.budget.asleep import Slept, bounded, slept
from overhead_lens.budget.shares import Shares, shares_of_stacks
from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.rules import Attribution
from tests.drawn.stacks import CLASSIFIER

LOCK, IO = Attribution("wait", "lock"), Attribution("wait", "io")
STACKS = {
    "python": "train (train.py:3)",
    "dispatcher": "train (train.py:3);at::_ops::add_Tensor::call (libtorch_cpu.so)",
    "io": "train (train.py:4);clock_nanosleep (libc.so.6)",
    "device": "train (train.py:5);cudaDeviceSynchronize (libcudart.so.13)",
}


def shares(**counts: int) -> Shares:
    lines = [f"{STACKS[name]} {count}" for name, count in counts.items() if count]
    return shares_of_stacks([list(parse_stacks(lines))], CLASSIFIER)


def closes(found: Shares) -> None:
    assert sum(found.attributions.values()) == pytest.approx(found.weight)
    assert sum(sum(frames.values()) for frames in found.frames.values()) == pytest.approx(found.weight)
    np.testing.assert_allclose(found.replicates.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.per_process.sum(axis=1), 1.0)


def test_what_it_did_awake_divides_as_its_stacks_do() -> None:
    before = shares(python=20, dispatcher=10, device=10, io=60)
    found = slept(before, 0.2)
    assert found == Slept(0.6, 0.2)
    after = bounded(before, found)
    closes(after)
    expected = {"python": 0.4, "dispatcher": 0.2, "wait": 0.4}
    assert {name: after.share(name) for name in expected} == pytest.approx(expected)
    # Waiting for a device may take a core.
    assert after.attributions[Attribution("wait", "device")] == pytest.approx(20)
    assert after.attributions[IO] == pytest.approx(20)


def test_few_stacks_awake_do_not_say_what_it_did() -> None:
    before = shares(python=20, io=180)
    after = bounded(before, slept(before, 0.5))
    closes(after)
    expected = {"python": 0.1, "wait": 0.5, "unattributed": 0.4}
    assert {name: after.share(name) for name in expected} == pytest.approx(expected)
    ran = "ran by its CPU clock, while stacks show it waiting"
    assert after.frames["unattributed"] == {ran: pytest.approx(80)}
    assert after.counts["unattributed", ran] == pytest.approx([80])
    assert sum(after.counts.values()) == pytest.approx([200])


def test_sleep_that_is_cut_twice_is_all_there() -> None:
    before = shares(python=2, io=38)
    once = bounded(before, slept(before, 0.6))
    twice = bounded(once, slept(once, 0.3))
    closes(twice)
    expected = {"python": 0.05, "wait": 0.3, "unattributed": 0.65}
    assert {name: twice.share(name) for name in expected} == pytest.approx(expected)
    assert sum(twice.counts.values()) == pytest.approx([40])


def test_input_may_take_a_core_in_the_system() -> None:
    before = shares(python=40, io=60)
    assert slept(before, 0.1, in_system=0.3) == Slept(0.6, 0.4)
    assert slept(before, 0.1, in_system=0.9) == Slept(0.6, pytest.approx(0.7))


@pytest.mark.parametrize("off_cores", [0.585, 0.6, 1.0])
def test_a_clock_that_leaves_as_much_changes_nothing(off_cores: float) -> None:
    before = shares(python=40, io=60)
    found = slept(before, off_cores)
    assert not found.disagree
    assert bounded(before, found) is before


@given(st.integers(0, 200), st.integers(0, 50), st.integers(0, 50), st.integers(1, 200), st.floats(-0.5, 1.5))
def test_it_never_slept_for_longer_than_its_clock_leaves(
    python: int, dispatcher: int, device: int, io: int, off_cores: float
) -> None:
    before = shares(python=python, dispatcher=dispatcher, device=device, io=io)
    found = slept(before, off_cores)
    after = bounded(before, found)
    closes(after)
    asleep = after.attributions.get(IO, 0.0) / after.weight
    assert asleep <= max(0.0, min(1.0, off_cores)) + 0.02 + 1e-9
    assert set(after.frames) <= {*HOST_CATEGORIES}
