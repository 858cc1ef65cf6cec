from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overhead_lens.budget.wall import (
    Waited,
    compiles_at_times,
    estimate_per_call,
    time_column,
    undisturbed,
    waited,
    with_compilations,
)
from overhead_lens.stats.bootstrap import median_over_processes


def clock(*processes: list[int], calls: int = 1, reference: int = 100) -> pd.DataFrame:
    rows = [
        {"process": process, "block": block, "calls": calls, "wall_ns": wall * calls, "reference_ns": reference}
        for process, walls in enumerate(processes)
        for block, wall in enumerate(walls)
    ]
    return pd.DataFrame(rows)


def test_median_over_processes_of_the_median_block() -> None:
    walls = [[10, 11, 99], [20, 20, 20], [30, 31, 32]]
    found, same = estimate_per_call(clock(*walls, calls=7), "wall_ns"), median_over_processes(list(np.array(walls)))
    assert (found.value, found.interval(), found.few) == (20.0, same.interval(), (11.0, 31.0))
    assert found.interval()[0] <= 20.0 <= found.interval()[1]


def test_the_steady_time_of_blocks_in_pieces_counts() -> None:
    whole = clock([10, 11, 12])
    assert time_column(whole) == "wall_ns"
    assert time_column(whole.assign(steady_ns=9)) == "steady_ns"


def test_equal_blocks_leave_no_uncertainty() -> None:
    assert estimate_per_call(clock(*[[50, 50]] * 5), "wall_ns").interval() == (50.0, 50.0)


def test_few_processes_give_a_wider_interval() -> None:
    three = estimate_per_call(clock([90] * 5, [100] * 5, [110] * 5), "wall_ns").interval()
    nine = estimate_per_call(clock(*([90] * 5, [100] * 5, [110] * 5) * 3), "wall_ns").interval()
    assert three[1] - three[0] > 2 * (nine[1] - nine[0])


@pytest.mark.parametrize("block_noise", [1, 90])
@pytest.mark.parametrize("processes", [3, 4, 5, 6, 8])
def test_the_interval_covers_whatever_blocks_scatter_by(processes: int, block_noise: int) -> None:
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        effects = random.normal(1_000, 30, processes)
        walls = [np.maximum(1, random.normal(effect, block_noise, 9)).round() for effect in effects]
        low, high = median_over_processes(walls).interval()
        covered += low <= 1_000 <= high
    assert 0.925 <= covered / 400 <= 0.98


def test_one_process_has_the_interval_of_its_blocks() -> None:
    low, high = estimate_per_call(clock([90, 100, 100, 100, 110]), "wall_ns").interval()
    assert (low, high) == (90.0, 110.0)


def test_disturbed_blocks_are_left_out_by_the_reference_loop_alone() -> None:
    frame = clock([10] * 6, [10] * 6)
    frame.loc[3, "reference_ns"] = 160  # slow before block 3, and so after block 2
    frame.loc[8, "wall_ns"] = 10_000  # slow itself, the reference beside it is not
    kept = undisturbed(frame)
    assert sorted(set(range(12)) - set(kept.index)) == [2, 3]


def test_waiting_for_a_core_is_not_a_calls_time() -> None:
    frame = clock([10, 30, 50], calls=4).assign(delayed_ns=[0, 80, 160], contended_ns=[4, 0, 0])
    kept = undisturbed(frame)
    assert kept["wall_ns"].tolist() == [40, 40, 40]
    assert undisturbed(kept)["wall_ns"].tolist() == [40, 40, 40]
    assert waited(frame) == Waited(delayed=240 / 360, contended=4 / 360)
    assert waited(clock([10])) == Waited()


def test_a_wholly_disturbed_process_keeps_its_three_best_blocks() -> None:
    frame = clock([10] * 5, [10] * 5)
    frame.loc[frame["process"] == 1, "reference_ns"] = [300, 290, 200, 210, 220]
    kept = undisturbed(frame)
    assert (kept["process"] == 0).sum() == 5
    assert kept.loc[kept["process"] == 1, "block"].tolist() == [2, 3, 4]


def test_the_time_of_few_compilations_is_spread_over_the_blocks_of_their_process() -> None:
    frame = clock([100, 110, 2_100, 90, 100], [200, 200, 200, 200, 200], calls=10).assign(compiles=0)
    frame.loc[2, "compiles"] = 1
    assert compiles_at_times(frame)
    # 2,000 more, in one of five blocks.
    assert list(with_compilations(frame)["wall_ns"] / 10) == [500, 510, 500, 490, 500, *[200] * 5]
    # Steady times lack the compilation, which the whole block's time has.
    steady = with_compilations(frame.assign(steady_ns=frame["wall_ns"].mask(frame["compiles"] > 0, 900)))
    assert list(steady["steady_ns"] / 10) == [500, 510, 500, 490, 500, *[200] * 5]
    assert list(steady["wall_ns"] / 10) == [500, 510, 500, 490, 500, *[200] * 5]


@pytest.mark.parametrize("compiling", [[], [0, 1, 2]], ids=["none", "most blocks"])
def test_a_call_whose_blocks_mostly_compile_or_never_do_does_not_compile_at_times(compiling: list[int]) -> None:
    frame = clock([100, 110, 2_100, 90, 100], calls=10).assign(compiles=0)
    frame.loc[compiling, "compiles"] = 1
    assert not compiles_at_times(frame)
