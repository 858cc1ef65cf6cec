"""A backward pass on autograd's thread counts where that thread spends it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from overhead_lens.budget.asleep import bounded, slept
from overhead_lens.budget.backward import backward_work, waiting_share, with_backward
from overhead_lens.budget.shares import Shares, shares_of_stacks
from overhead_lens.budget.warnings import share_warnings
from overhead_lens.instruments.samples.record import Sampled
from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.readers.py_spy.threads import SampledThread, read_threads
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import HostCategory, Part
from tests.drawn.stacks import CLASSIFIER

PID = 10
BACKWARD = "step (train.py:3);_engine_run_backward (torch/autograd/graph.py:869)"
ENGINE = "torch::autograd::Engine"
POP = f"{ENGINE}::thread_main (libtorch_cpu.so);torch::autograd::ReadyQueue::pop (libtorch_cpu.so);pthread_cond_wait (libc.so.6)"
CALLER = f"{BACKWARD};THPEngine_run_backward (libtorch_python.so);{ENGINE}::execute (libtorch_cpu.so);{POP}"
THREAD = f"{ENGINE}::thread_init (libtorch_cpu.so)"
NODE = f"{THREAD};{ENGINE}::thread_main (libtorch_cpu.so);{ENGINE}::evaluate_function (libtorch_cpu.so)"
STACKS = {
    "python": "step (train.py:2)",
    "io": "step (train.py:4);clock_nanosleep (libc.so.6)",
    "waits": CALLER,
    "device": "step (train.py:5);cudaDeviceSynchronize (libcudart.so.13)",
}
AUTOGRAD = {
    "dispatcher": f"{NODE};at::_ops::mm::call (libtorch_cpu.so)",
    "launch": f"{NODE};cudaLaunchKernel (libcudart.so.13)",
    "waits": f"{THREAD};{POP}",
}
COUNTS = st.integers(0, 200)


def caller(**counts: int) -> Shares:
    return shares_of_stacks(
        [list(parse_stacks(f"{STACKS[name]} {count}" for name, count in counts.items() if count))], CLASSIFIER
    )


def autograd(number: int = 11, **counts: int) -> SampledThread:
    lines = (f"thread ({number});{AUTOGRAD[name]} {count}" for name, count in counts.items() if count)
    (found,) = read_threads(lines, PID)
    return found


def other(samples: int) -> SampledThread:
    (found,) = read_threads([f"thread (12): feeder;feed (train.py:9);pthread_cond_wait (libc.so.6) {samples}"], PID)
    return found


def closes(found: Shares) -> None:
    assert sum(found.attributions.values()) == pytest.approx(found.weight)
    assert sum(sum(frames.values()) for frames in found.frames.values()) == pytest.approx(found.weight)
    assert min(found.attributions.values()) >= -1e-9
    np.testing.assert_allclose(found.replicates.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.per_process.sum(axis=1), 1.0)


@given(python=COUNTS, io=COUNTS, waits=st.integers(1, 200), dispatcher=COUNTS, launch=COUNTS, worked=st.floats(0, 1))
def test_what_autograd_works_is_moved_and_nothing_else(
    python: int, io: int, waits: int, dispatcher: int, launch: int, worked: float
) -> None:
    before = caller(python=python, io=io, waits=waits)
    work = backward_work([autograd(dispatcher=30 + dispatcher, launch=launch, waits=5)], PID, CLASSIFIER, {}, {})
    assert work is not None
    assert work.shares is not None
    after = with_backward(before, work.shares, worked)
    closes(after)
    total, at_work = python + io + waits, 30 + dispatcher + launch
    expected = {
        "python": python,
        "wait": io + (1 - worked) * waits,
        "dispatcher": worked * waits * (30 + dispatcher) / at_work,
        "launch": worked * waits * launch / at_work,
    }
    assert {name: after.share(name) * total for name in expected} == pytest.approx(expected)
    assert waiting_share(after) * total == pytest.approx((1 - worked) * waits)
    wait, launched = HOST_CATEGORIES.index("wait"), HOST_CATEGORIES.index("launch")
    moved = worked * waits / (io + waits) * before.replicates[:, wait]
    added = after.replicates[:, launched] - before.replicates[:, launched]
    np.testing.assert_allclose(added, moved * work.shares.replicates[:, launched], atol=1e-12)


@given(python=COUNTS, io=COUNTS, device=COUNTS, waits=st.integers(1, 200), off=st.floats(0, 1), worked=st.floats(0, 1))
@example(python=40, io=0, device=30, waits=30, off=0.25, worked=0.95)
@example(python=5, io=0, device=5, waits=90, off=0.5, worked=1.0)
def test_no_more_is_moved_than_its_cpu_clock_leaves(
    python: int, io: int, device: int, waits: int, off: float, worked: float
) -> None:
    before = caller(python=python, io=io, device=device, waits=waits)
    work = backward_work([autograd(dispatcher=30, launch=10)], PID, CLASSIFIER, {}, {})
    assert work is not None
    asleep = bounded(before, slept(before, off))
    after = with_backward(asleep, work.shares, worked)
    closes(after)
    assert min(weight for frames in after.frames.values() for weight in frames.values()) >= -1e-9
    assert after.replicates.min() >= -1e-9
    assert waiting_share(after) == pytest.approx((1 - worked) * waiting_share(asleep))


def test_it_works_for_as_long_as_its_cpu_clock_says() -> None:
    seen = backward_work([autograd(dispatcher=40, waits=160)], PID, CLASSIFIER, {11: 0.1}, {})
    clocked = backward_work([autograd(dispatcher=40, waits=160)], PID, CLASSIFIER, {11: 0.35}, {})
    assert seen is not None
    assert clocked is not None
    assert (seen.busy_share, clocked.busy_share) == (0.2, 0.35)
    # A thread that was seen in a tenth of the looks was there for a tenth of the time.
    rarely = backward_work([autograd(dispatcher=40), other(400)], PID, CLASSIFIER, {}, {})
    assert rarely is not None
    assert rarely.busy_share == 0.1


def test_two_devices_have_a_thread_each() -> None:
    threads = [autograd(dispatcher=30, waits=70), autograd(12, launch=10, waits=90)]
    work = backward_work(threads, PID, CLASSIFIER, {}, {})
    assert work is not None
    assert work.shares is not None
    assert work.busy_share == pytest.approx(0.4)
    assert (work.shares.share("dispatcher"), work.shares.share("launch")) == (0.75, 0.25)


def test_a_trace_divides_what_too_few_stacks_show() -> None:
    threads = [autograd(dispatcher=29, waits=171)]
    recorded = [
        HostCategory("dispatcher", 600, (0, 600), 0.0, "trace", (Part("dispatch", 400), Part("autograd", 200))),
        HostCategory("launch", 200, (0, 200), 0.0, "trace"),
        HostCategory("wait", 900, (0, 900), 0.0, "trace", (Part("lock", 900),)),
        HostCategory("unattributed", 50, (0, 50), 0.0, "trace"),
    ]
    # The trace of another thread says nothing.
    unknown = backward_work(threads, PID, CLASSIFIER, {11: 0.4}, {12: recorded})
    assert unknown is not None
    assert unknown.shares is None
    before = caller(python=60, waits=40)
    assert with_backward(before, unknown.shares, 1.0) is before
    work = backward_work(threads, PID, CLASSIFIER, {11: 0.4}, {11: recorded})
    assert work is not None
    assert work.shares is not None
    assert work.shares.evidence == "trace"
    after = with_backward(before, work.shares, 1.0)
    assert {str(attribution): weight for attribution, weight in after.attributions.items() if weight} == pytest.approx(
        {"python/user": 60, "dispatcher/dispatch": 20, "dispatcher/autograd": 10, "launch": 10}
    )


def test_a_program_without_a_device_has_no_such_thread() -> None:
    assert backward_work([other(100)], PID, CLASSIFIER, {}, {}) is None
    assert backward_work([], PID, CLASSIFIER, {}, {}) is None
    elsewhere = read_threads([f'process {PID}:"a";process 20:"b";thread (11);{AUTOGRAD["launch"]} 50'], PID)
    assert backward_work(elsewhere, PID, CLASSIFIER, {}, {}) is None


@pytest.mark.parametrize(("waits", "warned"), [(0, []), (20, []), (22, ["2% is waiting"]), (500, ["33% is waiting"])])
def test_a_budget_by_stacks_alone_says_that_they_overstate_the_wait(waits: int, warned: list[str]) -> None:
    lines = share_warnings(caller(python=1_000, waits=waits), 1_000.0, Sampled(1_000 + waits, 0), None, has_stacks=True)
    of_backward = [line for line in lines if "backward" in line]
    assert [
        line.partition(" for a backward pass on another thread: stacks overstate it")[0] for line in of_backward
    ] == warned
