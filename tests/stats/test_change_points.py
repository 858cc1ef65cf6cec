"""Change points of drawn series: where they must be found, and how often where nothing is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overhead_lens.stats.change_points import (  # fmt: skip
    LEAST_CAPTURES,
    find_cuts,
    levels_between,
    shifts_at,
)

LEVELS = np.array([2_000.0, 900.0, 600.0])


def series(seed: int, count: int, scatter: float = 10.0, *, heavy: bool = False) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    noise = random.standard_t(3, (3, count)) if heavy else random.normal(size=(3, count))
    return LEVELS[:, None] + scatter * noise, np.full((3, count), scatter)


def positions(values: np.ndarray, errors: np.ndarray) -> list[int]:
    return [cut.position for cut in find_cuts(values, errors)]


@pytest.mark.parametrize("place", range(3, 18))
def test_an_exact_step_is_found_where_it_is(place: int) -> None:
    values = np.tile(LEVELS[:, None], 20)
    values[1, place:] += 1.0
    cuts = find_cuts(values, np.zeros((3, 20)))
    # Three of twenty captures at one end: one in 570 orders is as clear.
    assert [(cut.position, cut.first, cut.last, cut.series) for cut in cuts] == [(place, place, place, 1)]


# Three standard deviations of a count of ``runs`` in which each has a chance of 5 %.
def about_5_percent(runs: int) -> float:
    return 0.05 * runs + 3 * (runs * 0.05 * 0.95) ** 0.5


# A step of two standard deviations is found in nearly every history, its place less surely.
def test_the_place_of_a_small_step_is_a_range_that_holds_it() -> None:
    held = exact = found = 0
    for seed in range(200):
        values, errors = series(seed, 40)
        values[1, 20:] += 20.0
        for cut in find_cuts(values, errors)[:1]:
            assert cut.first <= cut.position <= cut.last
            found, exact, held = found + 1, exact + (cut.position == 20), held + (cut.first <= 20 <= cut.last)
    assert 200 - found <= about_5_percent(200)
    # Were every place held, the ranges would be too wide; were each exact, no range were needed.
    assert exact < held < found
    assert found - held <= about_5_percent(200)


def test_a_noisy_step_is_found_and_the_series_that_made_it() -> None:
    blamed = missed = 0
    for seed in range(100):
        values, errors = series(seed, 24)
        values[1, 12:] += 80.0
        assert (12, 1) in [(cut.position, cut.series) for cut in find_cuts(values, errors)]
        ((first, moved, last),) = shifts_at(values, errors, [12])
        assert moved.moved
        blamed += first.moved or last.moved
        missed += not moved.ci95[0] < 80.0 < moved.ci95[1]
    assert blamed <= about_5_percent(100)
    assert missed <= about_5_percent(100)


# The captures state no error of their own, so their scatter has to say it.
@pytest.mark.parametrize("count", [7, 10, 14, 30])
def test_what_did_not_move_is_rarely_blamed_and_intervals_hold_the_truth(count: int) -> None:
    blamed = held = 0
    for seed in range(400):
        values, errors = series(seed, count)
        values[1, count // 2 :] += 200.0
        (shifts,) = shifts_at(values, 0 * errors, [count // 2])
        blamed += shifts[0].moved or shifts[2].moved
        held += shifts[1].ci95[0] <= 200.0 <= shifts[1].ci95[1]
    assert blamed <= about_5_percent(400)
    assert 400 - about_5_percent(400) <= held < 400


def test_steps_up_and_down_are_all_found() -> None:
    values, errors = series(1, 60)
    values[0, 20:40] += 100.0
    values[2, 40:] -= 100.0
    assert positions(values, errors) == [20, 40]
    up, down = shifts_at(values, errors, [20, 40])
    assert [shift.moved for shift in up] == [True, False, False]
    assert [shift.moved for shift in down] == [True, False, True]
    assert down[0].delta == pytest.approx(-100.0, abs=15.0)


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("count", [12, 30])
def test_noise_has_a_change_no_more_often_than_stated(count: int, heavy: bool) -> None:
    found = sum(bool(positions(*series(seed, count, heavy=heavy))) for seed in range(200))
    assert 0 < found <= about_5_percent(200)


def test_after_a_change_the_rest_is_cut_no_more_often_either() -> None:
    more = 0
    for seed in range(200):
        values, errors = series(seed, 24)
        values[1, 12:] += 200.0
        found = positions(values, errors)
        assert 12 in found
        more += len(found) > 1
    assert more <= about_5_percent(200)


@pytest.mark.parametrize("place", [0, 1, 7, 13, 18, 19])
def test_a_single_outlier_is_no_change(place: int) -> None:
    values, errors = series(3, 20)
    values[1, place] += 100_000.0
    assert positions(values, errors) == []


def test_an_outlier_does_not_hide_a_change_or_bend_its_size() -> None:
    values, errors = series(3, 24)
    values[1, 12:] += 100.0
    values[1, 5] += 100_000.0
    assert positions(values, errors) == [12]
    (shifts,) = shifts_at(values, errors, [12])
    assert shifts[1].delta == pytest.approx(100.0, abs=15.0)


def test_a_capture_with_a_wide_interval_counts_little() -> None:
    values, errors = series(5, 14, scatter=1.0)
    # Four wild captures at the end are a change if they are as sure of themselves as the others, and none if they are not.
    values[1, 10:] += 50.0
    assert positions(values, errors) == [10]
    errors[1, 10:] = 5_000.0
    assert positions(values, errors) == []


@pytest.mark.parametrize(("last", "cuts"), [(1, []), (2, []), (3, [17])])
def test_what_the_last_two_captures_show_waits_for_a_third(last: int, cuts: list[int]) -> None:
    values = np.tile(LEVELS[:, None], 20)
    values[1, 20 - last :] += 1_000.0
    assert positions(values, np.zeros((3, 20))) == cuts


def test_few_captures_are_too_few() -> None:
    values = np.tile(LEVELS[:, None], 2 * LEAST_CAPTURES - 1)
    values[:, LEAST_CAPTURES:] += 1_000.0
    assert find_cuts(values, np.ones_like(values)) == []


def test_the_order_of_the_series_does_not_matter() -> None:
    values, errors = series(2, 24)
    values[2, 9:] += 60.0
    assert positions(values, errors) == positions(values[::-1], errors[::-1]) == [9]


def test_levels_are_the_medians_of_the_stretches() -> None:
    values, errors = series(4, 20)
    values[0, 10:] += 500.0
    for before, after in [levels_between(values, errors, [10])[0]]:
        assert before.value == np.median(values[0, :10])
        assert before.ci95[0] < 2_000 < before.ci95[1]
        assert after.ci95[0] < 2_500 < after.ci95[1]
        assert before.ci95[1] - before.ci95[0] < 30


# Exact quantiles of Student's t at 97.5 %; a median absolute deviation of n captures knows as much as 0.37 n.
@pytest.mark.parametrize(("count", "quantile"), [(3, 12.7062), (5, 12.7062), (6, 4.3027), (7, 4.3027), (15, 2.5706)])
def test_an_interval_of_few_captures_is_that_of_student(count: int, quantile: float) -> None:
    # A median absolute deviation of 2.
    values = 100.0 + 2.0 * np.sign(2 * np.arange(count)[None, :] - (count - 1))
    (level,) = levels_between(values, np.zeros((1, count)), [])[0]
    half = quantile * 1.2533 * 1.4826 * 2.0 / math.sqrt(count - 1)
    assert level.ci95 == pytest.approx((100.0 - half, 100.0 + half), rel=1e-5)


@pytest.mark.parametrize(("count", "factor"), [(1, 1.0), (2, 1.0), (3, 1.2533)])
def test_captures_that_agree_are_as_uncertain_as_their_own_intervals(count: int, factor: float) -> None:
    (level,) = levels_between(np.full((1, count), 100.0), np.full((1, count), 2.0), [])[0]
    half = 1.96 * factor * 2.0 / math.sqrt(count)
    assert level.ci95 == pytest.approx((100.0 - half, 100.0 + half), rel=1e-5)


def test_a_shift_has_the_interval_of_student_too() -> None:
    values = np.array([[98.0, 100.0, 102.0, 148.0, 150.0, 152.0]])
    error = 1.2533 * math.sqrt(2 / 3)
    for stated, half in ((0.0, 12.7062 * 1.4826 * 2.0 * math.sqrt(6 / 4)), (100.0, 1.96 * 100.0)):
        ((shift,),) = shifts_at(values, np.full((1, 6), stated), [3])
        assert (shift.delta, shift.ci95) == (50.0, pytest.approx((50.0 - half * error, 50.0 + half * error), rel=1e-4))
