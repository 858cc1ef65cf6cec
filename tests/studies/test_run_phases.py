"""What a whole run was spent on, drawn: its phases sum to its wall, whatever compiled when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.program.area import Phase
from overhead_lens.studies.run.analysis import run_budget
from overhead_lens.studies.run.phases import phases
from overhead_lens.studies.run.stored import Compilation, StoredRun
from tests.documents import validated
from tests.drawn.runs import KERNEL, OUTSIDE, WORK, block, main, run_of, stretch
from tests.drawn.stacks import CLASSIFIER

IMPORTING = main(
    "<module> (train.py:1);_call_with_frames_removed (<frozen importlib._bootstrap>:241);f (torch.py:3)", 30
)


def times(run: StoredRun) -> dict[str, int]:
    """The phases in the budget of a run."""
    return {phase.name: phase.wall_ns for phase in run_budget(run, CLASSIFIER).phases}


def drawn(*spans: tuple[int, int], **meta: int) -> StoredRun:
    """Set-up from 0 to 1,000, warm-up to 4,000, steps to 10,000, the end at 12,000; stacks of the set-up import for 75 %."""
    steps = [*stretch(Phase.WARM_UP, *(3 * [1_000])), *stretch(Phase.BARE, *(6 * [1_000]))]
    moments = {"begun_ns": 500, "wall_ns": 11_500, "first_ns": 1_000, "settled_ns": 4_000, **meta}
    compilations = [Compilation(begin, end, "") for begin, end in spans]
    # The stacks of the warm-up do not say what the set-up did.
    start = [IMPORTING, main(OUTSIDE, 10), main(WORK, 500)]
    return run_of(*steps, start=start, turns=([main(KERNEL, 100)],), compilations=compilations, **moments)


def test_import_warm_up_and_steps() -> None:
    assert times(drawn()) == {"import": 375, "warm_up": 3_000, "steps": 6_000, "other": 125 + 2_000}


def test_compilations_are_taken_out_of_where_they_fall() -> None:
    found = times(drawn((600, 700), (1_000, 2_000), (1_500, 2_500), (3_900, 4_100), (9_000, 9_500)))
    assert found == {"import": 300, "compile": 2_300, "warm_up": 1_400, "steps": 5_400, "other": 100 + 2_000}


def test_imports_are_a_share_of_the_set_up_without_compilations() -> None:
    run = drawn((600, 900))
    compiling = "<module> (train.py:20);compile_inner (torch/_dynamo/convert_frame.py:7)"
    importing = f"{compiling};_find_and_load (<frozen importlib._bootstrap>:1);<module> (torch/_inductor/graph.py:1)"
    blocks = [*run.blocks, block(0, main(compiling, 130), main(importing, 30))]
    found = times(StoredRun(run.path, run.meta, run.steps, blocks))
    # 200 ns of set-up are left, of which 30 of 40 stacks import.
    assert found == {"import": 150, "compile": 300, "warm_up": 3_000, "steps": 6_000, "other": 50 + 2_000}


def test_what_lies_outside_the_run_is_cut() -> None:
    assert times(drawn((0, 600), (11_900, 20_000)))["compile"] == 100 + 100


def test_steps_that_never_settled_are_warm_up() -> None:
    assert times(drawn(settled_ns=0)) == {"import": 375, "warm_up": 9_000, "other": 2_125}


def test_steps_without_a_row_are_steps() -> None:
    run = drawn(last_ns=11_900, lost=5)
    assert times(run) == {"import": 375, "warm_up": 3_000, "steps": 7_900, "other": 125 + 100}
    assert run_budget(run, CLASSIFIER).steps.count == 3 + 9 + 5


def test_without_steps_all_is_set_up() -> None:
    run = run_of(start=[IMPORTING, main(OUTSIDE, 30)], begun_ns=500, wall_ns=1_000, home=None, found_by="none")
    assert times(run) == {"import": 500, "other": 500}


def test_stacks_count_as_often_as_they_stand_for() -> None:
    run = drawn()
    blocks = [*run.blocks, block(0, main(OUTSIDE, 4), weight=5), block(0, "thread (11): reader;f (a.py:1) 90")]
    assert times(StoredRun(run.path, run.meta, run.steps, blocks))["import"] == 500 * 30 // 60


def test_imports_are_a_share_of_the_set_up_before_earlier_steps_were_sampled() -> None:
    assert times(drawn(sampled_ns=700)) == {"import": 150, "warm_up": 3_000, "steps": 6_000, "other": 350 + 2_000}
    assert times(drawn(sampled_ns=4_000)) == times(drawn())


def test_of_an_earlier_run_the_beginning_is_not_known() -> None:
    assert times(drawn(begun_ns=0)) == {"other": 11_500}


def test_the_document_has_them() -> None:
    document = validated(run_budget(drawn((1_000, 2_000)), CLASSIFIER).to_json())
    assert document["phases"] == [
        {"name": "import", "wall_ns": 375},
        {"name": "compile", "wall_ns": 1_000},
        {"name": "warm_up", "wall_ns": 2_000},
        {"name": "steps", "wall_ns": 6_000},
        {"name": "other", "wall_ns": 2_125},
    ]


MOMENT = st.integers(-1_000, 15_000)


@given(
    st.lists(st.tuples(MOMENT, MOMENT).map(sorted), max_size=8),
    st.integers(1, 999),
    st.integers(0, 20_000),
    st.integers(1_000, 12_000),
    st.integers(0, 12_000),
    st.booleans(),
)
def test_they_sum_to_the_wall(
    spans: list[tuple[int, int]], begun_ns: int, wall_ns: int, first_ns: int, settled_ns: int, has_steps: bool
) -> None:
    run = drawn(*spans, begun_ns=begun_ns, wall_ns=wall_ns, first_ns=first_ns, settled_ns=settled_ns)
    stacks = [stack for each in run.blocks[0].threads for stack in each.stacks]
    found = phases(run, stacks, has_steps=has_steps)
    assert sum(phase.wall_ns for phase in found) == wall_ns
    assert all(phase.wall_ns > 0 for phase in found)
