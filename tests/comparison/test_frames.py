from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.budget.make import Budget, make_budget
from overhead_lens.comparison.difference import _change, compare_budgets
from overhead_lens.comparison.frames import FrameShift, frame_shifts, net_shifts_ns
from overhead_lens.stats.distributions import binomial_upper_tail
from overhead_lens.stats.shift import Shift
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.comparison.budgets import budget
from tests.drawn.captures import META, ROW, evidence
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER, stack

Counts = Mapping[tuple[str, str], Sequence[int]]


def sampled(counts: Counts, **host_ns: int) -> Budget:
    """A budget with these stacks of each process by category and frame."""
    stacks = {key: np.array(each, dtype=np.float64) for key, each in counts.items()}
    return replace(budget(0.001, **(host_ns or {"python": 500, "kernel": 500})), process_stacks=stacks)


def test_a_function_that_was_not_there_before() -> None:
    base = sampled({("python", "old"): [100, 100, 100, 100]})
    new = sampled({("python", "old"): [95, 95, 95, 95], ("kernel", "added"): [5, 5, 5, 5]})
    shifts = frame_shifts(base, new, (1_000, 1_000), level=0.95)
    # 400 stacks stand for 1,000 ns: 20 for 50 ns. An error of no stack is taken to be that of one.
    added = shifts["kernel", "added"]
    assert added.ns == 50.0
    assert added.error_ns == pytest.approx(2.5 * math.sqrt(1 + 20))
    assert added.p_value == pytest.approx(2 * 0.5**20)
    assert added.clear
    assert added.verdict == "slower"
    assert not shifts["python", "old"].clear
    assert shifts["python", "old"].verdict == "inconclusive"
    assert shifts["python", "old"].ns == -50.0


def test_sides_of_other_length_and_number_of_stacks_are_held_against_their_time() -> None:
    # The same 25 ns of the frame: 10 of 400 stacks of 1,000 ns, 10 of 800 stacks of 2,000 ns.
    base = sampled({("python", "old"): [195, 195], ("kernel", "same"): [5, 5]})
    new = sampled({("python", "old"): [395, 395], ("kernel", "same"): [5, 5]})
    same = frame_shifts(base, new, (1_000, 2_000), level=0.95)["kernel", "same"]
    assert same.ns == 0.0
    assert same.p_value == 1.0
    # 30 of 1,200 stacks of the new side against 10 of 400: the same share of both; the binomial's middle.
    longer = sampled({("python", "old"): [585, 585], ("kernel", "same"): [15, 15]})
    shift = frame_shifts(base, longer, (1_000, 1_000), level=0.95)["kernel", "same"]
    assert shift.ns == pytest.approx(0.0)
    upper = sum(math.comb(40, k) * 0.75**k * 0.25 ** (40 - k) for k in range(30, 41))
    lower = sum(math.comb(40, k) * 0.25**k * 0.75 ** (40 - k) for k in range(10, 41))
    assert shift.p_value == pytest.approx(min(1.0, 2 * min(upper, lower)))


def test_stacks_that_come_in_clumps_count_for_fewer() -> None:
    # Processes' counts of the frame scatter: chi-square is far over its degrees of freedom.
    base = sampled({("python", "old"): [100, 100, 100, 100]})
    scattered = {("python", "old"): [100, 80, 100, 80], ("kernel", "added"): [0, 20, 0, 20]}
    even = {("python", "old"): [90, 90, 90, 90], ("kernel", "added"): [10, 10, 10, 10]}
    added = [
        frame_shifts(base, sampled(counts), (1_000, 1_000), level=0.95)["kernel", "added"]
        for counts in (scattered, even)
    ]
    # (0 - 10)^2 over the variance of 9 four times, over 3 degrees of freedom.
    clump = 4 * 100 / 9 / 3
    assert added[0].p_value == pytest.approx(2 * binomial_upper_tail(40 / clump, 0.0, 0.5))
    assert added[1].p_value == pytest.approx(2 * 0.5**40)
    assert added[0].ns == added[1].ns == 100.0
    assert added[0].error_ns == pytest.approx(math.sqrt(clump) * added[1].error_ns)


@pytest.mark.parametrize("processes", [2, 3])
def test_frames_that_differ_between_few_processes_are_rarely_clear(processes: int) -> None:
    # Times of 40 frames differ by 30 % from process to process of either side, and the sides do not differ.
    random = np.random.default_rng(1)
    clear = 0
    for _ in range(200):
        weights = random.dirichlet(np.full(40, 0.5))
        sides = []
        for _ in range(2):
            ns = weights[:, None] * np.exp(random.normal(0.0, 0.3, (40, processes)))
            counts = np.array([random.multinomial(500, each / each.sum()) for each in ns.T]).T
            sides.append(sampled({("python", str(frame)): row for frame, row in enumerate(counts)}))
        clear += any(shift.clear for shift in frame_shifts(*sides, (1_000, 1_000), level=0.975).values())
    assert clear <= 0.025 * 200


def test_no_frame_of_few_stacks_and_none_of_one_process_is_tested() -> None:
    few = sampled({("python", "old"): [100, 100], ("kernel", "few"): [4, 5]})
    none = sampled({("python", "old"): [100, 100]})
    assert set(frame_shifts(none, few, (1_000, 1_000), level=0.95)) == {("python", "old")}
    one = sampled({("python", "old"): [100], ("kernel", "added"): [50]})
    assert frame_shifts(none, one, (1_000, 1_000), level=0.95) == {}
    assert frame_shifts(sampled({}), none, (1_000, 1_000), level=0.95) == {}


@given(
    old=st.lists(st.integers(0, 60), min_size=3, max_size=3), new=st.lists(st.integers(0, 60), min_size=3, max_size=3)
)
def test_swapping_the_sides_negates_a_shift(old: list[int], new: list[int]) -> None:
    sides = [sampled({("python", "rest"): [300] * 3, ("kernel", "frame"): each}) for each in (old, new)]
    there = frame_shifts(sides[0], sides[1], (1_000, 1_300), level=0.95)
    back = frame_shifts(sides[1], sides[0], (1_300, 1_000), level=0.95)
    assert there.keys() == back.keys()
    for key, shift in there.items():
        assert shift.ns == -back[key].ns
        assert shift.p_value == pytest.approx(back[key].p_value)
        assert shift.error_ns == pytest.approx(back[key].error_ns)
        assert shift.clear == back[key].clear


def clear(ns: float, error_ns: float) -> FrameShift:
    return FrameShift(ns, error_ns, 1e-6, clear=True)


def test_a_renamed_function_moves_no_category() -> None:
    shifts = {
        ("python", "before"): clear(-40.0, 6.0),
        ("python", "after"): clear(45.0, 8.0),
        ("kernel", "added"): clear(30.0, 3.0),
        ("kernel", "more"): clear(20.0, 4.0),
        ("kernel", "unclear"): FrameShift(100.0, 90.0, 0.3),
    }
    assert net_shifts_ns(shifts) == {"kernel": 50.0}


def test_a_function_of_a_hundredth_is_blamed_though_its_category_is_not_clear() -> None:
    processes = 12
    random = np.random.default_rng(5)
    stacks = [random.multinomial(250, [0.3, 0.3, 0.2, 0.2], processes).T for _ in range(2)]
    names = [("python", "a"), ("python", "b"), ("kernel", "c"), ("allocation", "d")]
    sides = []
    for counts, extra, kernel_ns in zip(stacks, (0, 3), (1_000, 1_040), strict=True):
        made = budget(0.0005, processes, python=2_000, kernel=kernel_ns, allocation=500)
        by_frame = {name: row.astype(np.float64) for name, row in zip(names, counts, strict=True)}
        if extra:
            by_frame["kernel", "added"] = np.full(processes, float(extra))
        total = sum(by_frame.values())
        categories = [
            sum((row for key, row in by_frame.items() if key[0] == n), np.zeros(processes)) for n in HOST_CATEGORIES
        ]
        shares = np.stack(categories, axis=1) / np.asarray(total)[:, None]
        frames = {"kernel": {"c": 700.0, **({"added": 41.5} if extra else {})}}
        sides.append(replace(made, process_stacks=by_frame, process_shares=shares, frames=frames))
    delta = compare_budgets(*sides)
    kernel = delta.host[HOST_CATEGORIES.index("kernel")]
    assert delta.verdict == "slower"
    assert kernel.ci95_ns[0] < 0 < kernel.ci95_ns[1]
    assert kernel.verdict == "slower"
    assert delta.blame == ("kernel",)
    assert kernel.in_frames_ns == round(36 / (3_036 / delta.new.wall.ns))
    assert (kernel.contributors[0].name, kernel.contributors[0].verdict) == ("added", "slower")
    assert kernel.contributors[0].ci95_ns is not None
    assert kernel.contributors[0].ci95_ns[0] > 0
    assert delta.sentence == f"{delta.wall_delta_ns} ns slower: kernel +{kernel.in_frames_ns} ns in added"


@pytest.mark.parametrize(("others_ns", "size_ns"), [(-5.0, 30), (-20.0, 30), (-22.0, 30), (-23.0, 7)])
def test_known_frames_are_all_of_a_change_unless_its_category_contradicts(others_ns: float, size_ns: int) -> None:
    # The category's error is 8 ns with 1,000 degrees of freedom: its own 95 % interval leaves 15.7 ns for all other frames, one
    # that none of nine categories leaves by chance 22.2.
    shift = Shift(30.0 + others_ns, 8.0, 1_000.0, 12)
    change = _change("kernel", round(shift.ns), shift, "inconclusive", 30.0, ())
    assert (change.in_frames_ns, change.size_ns) == (30, size_ns)
    assert change.in_frames == (size_ns == 30)


def faulting(call_ns: int, faults_ns: Sequence[int], kernel_ns: int) -> Budget:
    """Four processes with 1,000 stacks and so much time of page faults each, which the kernel's stacks hide."""
    rows = [
        ROW | {"process": process, "calls": 1, "wall_ns": call_ns, "system_ns": ns, "minor_faults": ns // 100}
        for process, ns in enumerate(faults_ns)
    ]
    clock = pd.DataFrame([row | {"block": block} for row in rows for block in range(4)])
    kernel = round(1_000 * kernel_ns / call_ns)
    stacks = [
        stack(USER, BINDING, ENTRY, "at::native::add_kernel (libtorch_cpu.so)", count=kernel),
        stack(USER, count=1_000 - kernel),
    ]
    return make_budget(evidence(META, clock, [stacks] * 4), CLASSIFIER)


def test_page_faults_are_the_kernels_in_none_of_its_frames() -> None:
    delta = compare_budgets(faulting(1_000, [0] * 4, 600), faulting(1_400, [400] * 4, 1_000))
    kernel, allocation = (delta.host[HOST_CATEGORIES.index(name)] for name in ("kernel", "allocation"))
    assert (kernel.delta_ns, kernel.in_frames_ns) == (0, None)
    assert kernel.verdict != "slower"
    assert (allocation.delta_ns, allocation.in_frames_ns, delta.blame) == (400, 400, ("allocation",))
    for contributor in (*kernel.contributors, *allocation.contributors):
        if contributor.ci95_ns is not None:
            assert contributor.ci95_ns[0] <= contributor.delta_ns <= contributor.ci95_ns[1]


def test_page_faults_are_as_uncertain_as_processes_differ_in_them() -> None:
    # A median of 300 ns and one of 400, of processes that are up to 400 ns apart.
    base, new = (faulting(1_400, [more + ns for ns in (100, 300, 300, 500)], 1_000) for more in (0, 100))
    delta = compare_budgets(base, new)
    kernel, allocation = (delta.host[HOST_CATEGORIES.index(name)] for name in ("kernel", "allocation"))
    assert (kernel.delta_ns, allocation.delta_ns) == (-100, 100)
    for change in (kernel, allocation):
        assert change.ci95_ns[0] < 0 < change.ci95_ns[1]
        assert (change.verdict, change.in_frames_ns) == ("inconclusive", None)


def test_few_processes_of_very_different_page_faults_do_not_make_their_error_explode() -> None:
    budget = faulting(100_000, [4_000, 4_000, 4_000, 40_000], 60_000)
    # Medians of four draws are 4, 22 or 40 us.
    assert 0.02 < budget.fault_error < 0.36
    assert faulting(100_000, [10_000] * 4, 60_000).fault_error == 0.0
