from __future__ import annotations

import pytest

from overhead_lens.budget.threads import ThreadBudget, sleep_warnings, thread_budgets
from overhead_lens.errors import InvariantError
from overhead_lens.readers.py_spy.threads import SampledThread, read_threads
from tests.drawn.stacks import CLASSIFIER

WALL_NS = 10_000_000_001
WORK = "train (train.py:3)"
SLEEP = "train (train.py:4);clock_nanosleep (libc.so.6)"
ADD = "train (train.py:3);torch::autograd::THPVariable_add (libtorch_python.so);at::_ops::add_Tensor::call (libtorch_cpu.so)"


def thread(tid: int, name: str, *stacks: tuple[str, int], process: int = 10) -> SampledThread:
    (found,) = read_threads([f"thread ({tid}): {name};{frames} {count}" for frames, count in stacks], process)
    return found


def budgets(*threads: SampledThread) -> tuple[ThreadBudget, ...]:
    return thread_budgets(threads, 10, WALL_NS, CLASSIFIER, {}, {})


def test_each_thread_sums_to_the_whole_time() -> None:
    (main,) = budgets(thread(10, "MainThread", (WORK, 50), (ADD, 25), (SLEEP, 25)))
    assert sum(category.ns for category in main.host) == main.wall_ns == WALL_NS
    assert {category.category: category.ns for category in main.host if category.ns} == {
        "python": 5_000_000_001,
        "dispatcher": 2_500_000_000,
        "wait": 2_500_000_000,
    }
    assert {part.name: part.ns for part in main.category("python").parts}["user"] == 5_000_000_001
    assert main.category("wait").top[0].frame == "train (train.py)"
    low, high = main.category("python").ci95_ns
    # Of 100 stacks, half of them: 1.96 times the square root of 0.25 / 100.
    assert (low, high) == (pytest.approx(0.4 * WALL_NS, rel=0.04), pytest.approx(0.6 * WALL_NS, rel=0.04))
    assert (main.samples, main.busy_share, main.seen_share) == (100, 0.75, 1.0)


def test_the_main_thread_first_then_the_busiest() -> None:
    found = budgets(
        thread(13, "idle", (SLEEP, 100)),
        thread(12, "MainThread", (WORK, 100), process=12),
        thread(11, "half", (WORK, 50), (SLEEP, 50)),
        thread(10, "MainThread", (WORK, 1), (SLEEP, 99)),
    )
    assert [(each.process, each.name) for each in found] == [
        *((10, "MainThread"), (12, "MainThread"), (10, "half"), (10, "idle"))
    ]


def test_a_thread_that_was_there_for_a_tenth_is_scaled_and_busy_for_a_tenth() -> None:
    _, short = budgets(thread(10, "MainThread", (SLEEP, 100)), thread(11, "short", (WORK, 8), (SLEEP, 2)))
    assert short.category("python").share == pytest.approx(0.8)
    assert short.wall_ns == WALL_NS
    assert (short.seen_share, short.busy_share) == (0.1, pytest.approx(0.08))


def test_the_cpu_clock_bounds_the_sleep_of_threads_of_the_process() -> None:
    threads = [
        thread(10, "MainThread", (WORK, 40), (SLEEP, 60)),
        thread(11, "late", (WORK, 1), (SLEEP, 49)),
        thread(10, "MainThread", (WORK, 40), (SLEEP, 60), process=12),
    ]
    main, late, child = sorted(
        thread_budgets(threads, 10, WALL_NS, CLASSIFIER, {10: 0.7, 11: 0.25}, {}),
        key=lambda each: (each.process, each.thread),
    )
    assert (main.category("wait").share, main.busy_share) == (pytest.approx(0.3), pytest.approx(0.7))
    # Of the half of the time that it was there, it was on a core for another half: what it did then is not known.
    assert (late.seen_share, late.category("wait").share) == (0.5, pytest.approx(0.5))
    assert late.category("unattributed").share == pytest.approx(0.48)
    # Another process's thread of that number has another clock.
    assert (child.category("wait").share, child.slept) == (pytest.approx(0.6), None)
    (said,) = sleep_warnings((each.called, each.slept) for each in (main, late, child))
    assert said == (
        "stacks show threads waiting too often (MainThread 60%, by CPU clock at most 30%; late 98%, by CPU clock at most 50%): py-spy often stops"
        " a thread only once it waits; the budget keeps to the CPU clock"
    )


def test_a_thread_that_reads_files_in_memory_runs_in_the_system_meanwhile() -> None:
    threads = [thread(10, "MainThread", (WORK, 40), ("train (train.py:4);read (libc.so.6)", 60))]
    (reader,) = thread_budgets(threads, 10, WALL_NS, CLASSIFIER, {10: 1.0}, {10: 0.75})
    assert (reader.category("wait").share, reader.category("python").share) == (0.6, 0.4)
    assert list(sleep_warnings([(reader.called, reader.slept)])) == []


def test_a_child_is_held_against_the_looks_at_its_own_process() -> None:
    found = budgets(thread(10, "MainThread", (WORK, 100)), thread(12, "MainThread", (WORK, 60), process=12))
    assert [each.seen_share for each in found] == [1.0, 1.0]


def test_a_main_thread_of_another_namespace_is_known_by_its_name() -> None:
    found = budgets(thread(2, "busy", (WORK, 100)), thread(1, "MainThread", (SLEEP, 100)))
    assert [each.name for each in found] == ["MainThread", "busy"]


def test_stacks_cut_off_by_the_clock_are_completed_from_those_of_other_threads() -> None:
    whole = f"{ADD};std::chrono::_V2::system_clock::now() (libstdc++.so.6);clock_gettime (libc.so.6);[vdso] ([vdso])"
    cut = f"{WORK};clock_gettime (libc.so.6);[vdso] ([vdso])"
    _, other = budgets(thread(10, "MainThread", (whole, 10)), thread(11, "other", (cut, 10)))
    assert other.category("dispatcher").ns == WALL_NS


def test_a_budget_that_does_not_close_is_refused() -> None:
    (main,) = budgets(thread(10, "MainThread", (WORK, 50)))
    for changed in ({"wall_ns": 1}, {"host": main.host[1:]}, {"busy_share": 1.1}):
        values = {name: getattr(main, name) for name in ThreadBudget.__slots__} | changed
        with pytest.raises(InvariantError):
            ThreadBudget(**values)
