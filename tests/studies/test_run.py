"""Runs of a user's program, drawn: the budget of a step, its regions, its slowest steps, what a reader must know."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import overhead_lens as ol
from overhead_lens.errors import UsageError
from overhead_lens.program.area import Phase
from overhead_lens.report.forms import to_text
from overhead_lens.studies.run.analysis import RunBudget, Steps, StepWall, run_budget
from overhead_lens.studies.run.phases import PhaseTime
from overhead_lens.studies.run.slowest import Slow, slowest_steps
from overhead_lens.studies.run.stored import STEPS, Compilation, Place, StoredRegion, read_run
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.runs import (
    COMPILING,
    HOME,
    KERNEL,
    OUTSIDE,
    PID,
    WAIT,
    WORK,
    bare,
    block,
    main,
    run_of,
    store,
    stretch,
    table,
)
from tests.drawn.stacks import CLASSIFIER

TURN = [main(WORK, 600), main(WAIT, 400)]


def budget(*rows: Any, turns: Any = (TURN,), **meta: Any) -> RunBudget:
    return run_budget(run_of(*rows, turns=turns, **meta), CLASSIFIER)


def ns_of(found: RunBudget) -> dict[str, int]:
    """Categories that have time."""
    return {each.category: each.ns for each in found.host if each.ns}


# ---------------------------------------------------------------- the step
def test_the_wall_is_the_mean_of_bare_steps() -> None:
    found = budget(
        *stretch(Phase.WARM_UP, *(5 * [900])),
        *stretch(Phase.BARE, 5_000, 100, 200, 300),
        *stretch(Phase.ATTACHING, 4_000),
        *stretch(Phase.SAMPLED, 1_000, 500, 500),
        *stretch(Phase.BARE, 7_000, 200, 200),
        *stretch(Phase.TRACED, 800),
    )
    assert (found.wall.ns, found.per) == (200, "step")
    # Student's t with four degrees of freedom: 2.776 standard errors of five blocks of one step, as a factor.
    factor = math.exp(2.776 * (20_000 / 4 / 5) ** 0.5 / 200)
    assert found.wall.ci95_ns == (pytest.approx(200 / factor, rel=0.003), pytest.approx(200 * factor, rel=0.003))
    assert found.wall.interval == "t over blocks"
    assert found.steps == Steps("optimizer", "train.py:7", count=3 + 17, warm_up=3 + 5, measured=5, thread="")


def test_the_step_is_divided_by_the_stacks_inside_it() -> None:
    found = budget(*bare(100, 300, 300, 100), turns=(TURN, TURN))
    assert ns_of(found) == {"python": 120, "wait": 80}
    assert [(part.name, part.ns) for part in found.category("python").parts if part.ns] == [("user", 120)]
    assert found.category("python").evidence == "samples"
    low, high = found.category("wait").ci95_ns
    assert low < 80 < high
    assert (found.samples, found.warnings) == (2_000, ())


def test_stacks_outside_the_steps_are_left_out_and_counted() -> None:
    turn = [
        *TURN,
        main(OUTSIDE, 200),
        main("<module> (train.py:5);evaluate (train.py:5)", 20),
        main("train (other/train.py:5)", 20),
        main("train (train.py)", 10),
    ]
    found = budget(*bare(100, 300, 300, 100), turns=(turn,))
    assert (ns_of(found), found.samples) == ({"python": 120, "wait": 80}, 1_000)
    assert found.warnings == ("250 of 1,250 stacks of the thread lie outside the steps and are left out",)


ROLLOUT = main("<module> (train.py:20);collect (rollouts.py:5)", 300)
SAMPLED, BARE = stretch(Phase.SAMPLED, 100, 700), bare(100, 300, 300, 100)


@pytest.mark.parametrize(
    ("rows", "turns", "found_by", "samples"),
    [
        # From one call of the optimizer to the next is a step, whatever the program does between.
        ((*SAMPLED, *BARE), 1, "optimizer", 1_300),
        ((*SAMPLED, *BARE, *SAMPLED, *BARE), 2, "optimizer", 2_600),
        # A loop may be left and entered again.
        ((*SAMPLED, *BARE), 1, "loop", 1_000),
        # Nobody knows whether the program had done its steps when the sampler ended in the middle of a turn.
        ((*SAMPLED, *BARE, *SAMPLED, *stretch(Phase.ATTACHING, 100)), 2, "optimizer", 1_300 + 1_000),
        # The program had done its steps when the second turn began.
        ((*SAMPLED, *BARE, *stretch(Phase.ATTACHING, 100)), 2, "optimizer", 1_000 + 1_000),
        # The first turn was that of other steps.
        ((*SAMPLED, *BARE), 2, "optimizer", 1_000 + 1_300),
    ],
)
def test_stacks_of_a_turn_that_steps_fill_are_all_inside(
    rows: tuple[dict[str, int], ...], turns: int, found_by: str, samples: int
) -> None:
    found = budget(*rows, turns=[[*TURN, ROLLOUT]] * turns, found_by=found_by)
    assert found.samples == samples
    assert sum(ns_of(found).values()) == found.wall.ns


@pytest.mark.parametrize(("behind_ns", "samples"), [(0, 1_300), (20, 1_300), (21, 1_000)])
def test_a_turn_may_last_to_the_end_of_the_program(behind_ns: int, samples: int) -> None:
    # 1,000 ns of steps, drawn from 1,000 ns on.
    rows = [*stretch(Phase.SAMPLED, 100, 200), *stretch(Phase.ATTACHING, *(7 * [100]))]
    found = budget(*rows, turns=[[*TURN, ROLLOUT]], begun_ns=500, wall_ns=1_500 + behind_ns)
    assert found.samples == samples


@pytest.mark.parametrize(
    ("found_by", "turn", "samples"),
    [
        # Rollouts before the last steps of a turn lie between steps, those beside and after them may not.
        ("optimizer", 1, 300 + 1_000 + 300 + 1_000),
        # The program had done its steps when the second turn began.
        ("optimizer", 2, 300 + 1_000 + 300 + 1_000),
        ("loop", 1, 1_000 + 1_000),
    ],
)
def test_stacks_before_the_last_steps_of_a_turn_are_inside(found_by: str, turn: int, samples: int) -> None:
    rows = (*SAMPLED, *BARE, *stretch(Phase.ATTACHING, 100))
    run = run_of(*rows, found_by=found_by)
    others = [block(2, ROLLOUT)] if turn == 2 else []
    blocks = [block(1, *lines) for lines in ([ROLLOUT], [*TURN, ROLLOUT], TURN, [ROLLOUT], [ROLLOUT])]
    found = run_budget(replace(run, blocks=[*blocks, *others]), CLASSIFIER)
    assert found.samples == samples


@pytest.mark.parametrize("folder", ["", "site-packages/"])
def test_stacks_of_the_watcher_are_of_no_step(folder: str) -> None:
    watching = f"{WORK};StepWatcher.marked ({folder}overhead_lens/program/watcher.py:130);getrusage (libc.so.6)"
    found = budget(*bare(100, 300, 300, 100), turns=([*TURN, main(watching, 500)],))
    assert (ns_of(found), found.samples, found.warnings) == ({"python": 120, "wait": 80}, 1_000, ())


@pytest.mark.parametrize(
    ("home", "samples"),
    [
        (HOME, 1_000),
        (Place("/home/ada/train.py", "", 3, 9), 1_000),
        (Place("/home/ada/train.py", "train", 0, 0), 1_200),
        (Place("/home/ada/train.py", "Trainer.train", 0, 0), 0),
        (None, 1_200),
    ],
)
def test_where_the_steps_are(home: Place | None, samples: int) -> None:
    assert budget(*bare(100, 200, 300), turns=([*TURN, main(OUTSIDE, 200)],), home=home).samples == samples


def test_methods_are_known_by_their_last_name() -> None:
    turn = [main("Trainer.train (train.py:5)", 300)]
    assert budget(*bare(100, 200, 300), turns=(turn,)).samples == 300


def test_compilations_are_told_by_the_clock() -> None:
    steps = [*(9 * [100]), {"ns": 1_000, "compile_ns": 900}]
    found = budget(*bare(*steps), turns=([*TURN, main(COMPILING, 7_000)],))
    # 1,900 ns in ten steps; stacks say how the rest divides.
    assert found.wall.ns == 190
    assert ns_of(found) == {"python": 60, "wait": 40, "compile": 90}
    assert [found.category(name).evidence for name in ("compile", "wait", "kernel")] == ["clock", "samples", "none"]
    assert sum(each.share for each in found.host) == pytest.approx(1)
    assert validated(found.to_json())["host"][-2]["category"] == "compile"


def test_compilations_that_no_clock_told_of_are_told_by_stacks() -> None:
    found = budget(*bare(*(10 * [190])), turns=([*TURN, main(COMPILING, 900)],))
    assert ns_of(found) == {"python": 60, "wait": 40, "compile": 90}


def test_compilations_that_the_clock_places_outside_the_steps_are_left_out() -> None:
    compilations = [Compilation(10, 900, "")]
    found = budget(*bare(*(10 * [190])), turns=([*TURN, main(COMPILING, 900)],), compilations=compilations)
    assert (ns_of(found), found.samples) == ({"python": 114, "wait": 76}, 1_000)
    assert found.warnings == ("900 of 1,900 stacks of the thread lie outside the steps and are left out",)


@pytest.mark.parametrize(
    ("compilations", "times"),
    [([Compilation(10, 900, "")], {"python": 100}), ([], {"python": 25, "compile": 75})],
)
def test_compilations_that_the_clock_places_outside_the_steps_are_in_no_region(
    compilations: list[Compilation], times: dict[str, int]
) -> None:
    region = StoredRegion("forward", [HOME], 3, 300.0, 30_000.0, [(1, 100.0), (1, 100.0), (1, 100.0)])
    turn = [main(WORK, 100), main(COMPILING, 300)]
    found = budget(*bare(100, 100, 100), turns=(turn,), regions=[region], compilations=compilations)
    assert {each.category: each.ns for each in found.regions[0].host if each.ns} == ns_of(found) == times


def test_what_the_program_does_between_two_entries_of_its_loop_is_of_no_step() -> None:
    steps = table(bare(*(10 * [100]), 900, *(9 * [100])))
    steps.loc[11:, ["begin_ns", "end_ns", "compile_ns"]] += 2_000_000_000
    found = run_budget(replace(run_of(turns=(TURN,)), steps=steps), CLASSIFIER)
    assert ns_of(found) == {"python": 84, "wait": 56}
    assert found.slowest == (Slow(3 + 11, 900, "unknown: the counters were not read when it began"),)
    # Whatever the loop's first step compiles is unknown, and that of the others counts.
    steps.loc[15:, "compile_ns"] += 190
    assert run_budget(replace(run_of(turns=(TURN,)), steps=steps), CLASSIFIER).category("compile").ns == 10


def test_page_faults_are_taken_out_of_the_kernel() -> None:
    step = {"ns": 1_000, "user_ns": 600, "system_ns": 400, "faults": 2}
    found = budget(*bare(*(20 * [step])), turns=([main(KERNEL, 800), main(WORK, 200)],))
    assert ns_of(found) == {"python": 200, "allocation": 400, "kernel": 400}
    assert [(part.name, part.ns) for part in found.category("allocation").parts if part.ns] == [("page_fault", 400)]


def test_page_faults_are_those_of_steps_that_compiled_nothing() -> None:
    step = {"ns": 1_000, "user_ns": 600, "system_ns": 400, "faults": 2}
    compiling = {**step, "ns": 101_000, "user_ns": 100_600, "compile_ns": 100_000}
    found = budget(*bare(*(20 * [step]), compiling), turns=([main(KERNEL, 800), main(WORK, 200)],))
    # 100,000 ns in 21 steps.
    assert ns_of(found) == {"python": 200, "allocation": 400, "kernel": 400, "compile": 4_762}
    every = {**compiling, "ns": 2_000, "user_ns": 1_600, "compile_ns": 1_000}
    found = budget(*bare(*(20 * [every])), turns=([main(KERNEL, 800), main(WORK, 200)],))
    assert ns_of(found) == {"python": 200, "kernel": 800, "compile": 1_000}


@pytest.mark.parametrize(
    ("cpu_ns", "system", "waits_ns"),
    [
        (600, "Linux-6.1", 400),
        (595, "Linux-6.1", 400),
        (800, "Linux-6.1", 200),
        (0, "Linux-6.1", 400),
        (800, "macOS-15", 400),
    ],
)
def test_a_step_waits_no_longer_than_its_cpu_clock_leaves(cpu_ns: int, system: str, waits_ns: int) -> None:
    step = {"ns": 1_000, "user_ns": cpu_ns}
    compiling = {"ns": 9_000, "user_ns": 0, "compile_ns": 8_000}
    found = budget(*bare(*(20 * [step])), turns=([main(WORK, 60), main(WAIT, 40)],), environment={"system": system})
    assert ns_of(found) == {"python": 1_000 - waits_ns, "wait": waits_ns}
    said = [warning for warning in found.warnings if "waiting too often" in warning]
    assert said == (
        [
            (
                "stacks show threads waiting too often (the steps 40%, by CPU clock at most 20%): py-spy often stops"
                " a thread only once it waits; the budget keeps to the CPU clock"
            )
        ]
        if waits_ns == 200
        else []
    )
    # While something compiles, other processes may do it.
    told = budget(
        *bare(*(20 * [step]), compiling), turns=([main(WORK, 60), main(WAIT, 40)],), environment={"system": system}
    )
    assert told.category("wait").ns == round(waits_ns / 1_000 * (told.wall.ns - told.category("compile").ns))


@pytest.mark.parametrize(
    ("pause_ns", "thread", "waits_ns"),
    [
        (0, PID, 200),
        (0, 11, 400),  # the clock of another thread
        (100, PID, 400),  # what runs between the steps is not known
    ],
)
def test_short_steps_wait_no_longer_than_their_threads_clock_leaves(pause_ns: int, thread: int, waits_ns: int) -> None:
    turns = ([main(WORK, 60), main(WAIT, 40)],)
    clocks: dict[str, Any] = {"environment": {"system": "Linux-6.1"}, "running": [(thread, 0.8)]}
    run = run_of(*bare(*(20 * [1_000 + pause_ns])), turns=turns, **clocks)
    assert run.steps is not None
    steps = run.steps.assign(begin_ns=run.steps["begin_ns"] + pause_ns)
    found = run_budget(replace(run, steps=steps), CLASSIFIER)
    assert ns_of(found) == {"python": 1_000 - waits_ns, "wait": waits_ns}


def test_a_compilation_between_short_steps_is_not_their_cpu_time() -> None:
    turns = ([main(WORK, 60), main(WAIT, 40)],)
    clocks: dict[str, Any] = {"environment": {"system": "Linux-6.1"}, "running": [(PID, 0.9)]}
    compiling = {"ns": 40_000, "compile_ns": 39_000}
    found = budget(*bare(*(20 * [1_000]), compiling), turns=turns, **clocks)
    # Of the time between the sampler's turns, two thirds are the compiler's: what the steps ran is not known.
    assert found.category("wait").ns == round(0.4 * (found.wall.ns - found.category("compile").ns))


def test_a_step_that_reads_a_file_in_memory_runs_in_the_system_meanwhile() -> None:
    read = main(f"{WORK};read (libc.so.6)", 60)
    step = {"ns": 1_000, "user_ns": 400, "system_ns": 600}
    found = budget(*bare(*(20 * [step])), turns=([main(WORK, 40), read],), environment={"system": "Linux-6.1"})
    assert ns_of(found) == {"python": 400, "wait": 600}
    assert not [warning for warning in found.warnings if "waiting too often" in warning]


@pytest.mark.parametrize(
    ("running", "times", "most"),
    [
        # 400 ns off the cores: 200 wait for autograd, whose stacks show 60 % of work, and 200 for the disk.
        (0.0, {"python": 600, "dispatcher": 120, "wait": 280}, 40),
        # For 300 of them autograd's thread is on a core.
        (0.3, {"python": 750, "dispatcher": 150, "wait": 100}, 10),
    ],
)
def test_a_step_and_its_backward_pass_sleep_no_longer_than_both_cpu_clocks_leave(
    running: float, times: dict[str, int], most: int
) -> None:
    engine = "torch::autograd::Engine::thread_main (libtorch_cpu.so)"
    node = f"torch::autograd::Engine::thread_init (libtorch_cpu.so);{engine}"
    pop = "torch::autograd::ReadyQueue::pop (libtorch_cpu.so);pthread_cond_wait (libc.so.6)"
    autograd = [
        f"thread (11);{node};at::_ops::mm::call (libtorch_cpu.so) 60",
        f"thread (11);{node};PyNode::apply (hook.py:1);clock_nanosleep (libc.so.6) 40",
        f"thread (11);{node};{pop} 100",
    ]
    turn = [main(WORK, 40), main(WAIT, 30), main(f"{WORK};{engine};{pop}", 30), *autograd]
    steps = bare(*(20 * [{"ns": 1_000, "user_ns": 600}]))
    found = budget(*steps, turns=(turn,), environment={"system": "Linux-6.1"}, running=[(11, running)])
    assert ns_of(found) == times
    (said,) = [warning for warning in found.warnings if "waiting too often" in warning]
    assert f"by CPU clock at most {most}%" in said


def test_without_bare_steps_the_cpu_clock_is_that_of_the_steps_that_set_the_wall() -> None:
    rows = stretch(Phase.SAMPLED, *(20 * [{"ns": 1_000, "user_ns": 800}]))
    found = budget(*rows, turns=([main(WORK, 60), main(WAIT, 40)],), environment={"system": "Linux-6.1"})
    assert (found.steps.measured, ns_of(found)) == (0, {"python": 800, "wait": 200})


# ---------------------------------------------------------------- less than steps and stacks
def test_without_steps_the_budget_is_of_the_run() -> None:
    found = budget(turns=([*TURN, main(OUTSIDE, 1_000)],), found_by="none", home=None)
    assert found.per == "run"
    assert found.wall == StepWall(5_000_000, (5_000_000.0, 5_000_000.0), interval="none")
    assert found.steps == Steps("none", "", 0, 0, 0, "")
    assert ns_of(found) == {"python": 4_000_000, "wait": 1_000_000}
    assert found.warnings == (
        "no step could be measured (none were seen): the budget is of the whole run; --step names one",
    )


def test_all_stacks_divide_the_whole_run_though_steps_were_sought() -> None:
    importing = main(
        "<module> (train.py:1);_find_and_load (<frozen importlib._bootstrap>:1);<module> (lib.py:1)", 1_000
    )
    other = "thread (11): loader;wait (data.py:1);clock_nanosleep (libc.so.6) "
    # Six seconds of a module's steps, until an optimizer took two, which are too few.
    found = budget(
        *stretch(Phase.WARM_UP, 1, 1), start=[importing, f"{other} 1000"], turns=[[*TURN, f"{other} 500"]], begun_ns=1
    )
    assert (found.per, found.samples) == ("run", 2_000)
    assert ns_of(found) == {"python": 4_000_000, "wait": 1_000_000}
    assert [(part.name, part.ns) for part in found.category("python").parts if part.ns] == [
        ("user", 1_500_000),
        ("import", 2_500_000),
    ]
    assert found.phases == (PhaseTime("import", 2_500_000), PhaseTime("other", 2_500_000))
    assert [thread.samples for thread in found.threads] == [1_500]


def test_too_few_bare_steps_and_others_that_were_not_traced_set_the_wall() -> None:
    rows = [*stretch(Phase.WARM_UP, 150, 50), *stretch(Phase.SAMPLED, 200, 300), *stretch(Phase.TRACED, 7_000)]
    found = budget(*rows, *bare(100, 200)[1:])
    assert (found.per, found.wall.ns, found.steps.measured, found.samples) == ("step", 200, 0, 1_000)
    assert found.steps.count == 3 + 7
    assert (
        "too few steps ran without an instrument: the wall is the mean of others, which were not traced"
        in found.warnings
    )
    assert budget(*rows, *bare(100, 200, 600)).wall.ns == 300
    # Two steps that have settled are too few as well.
    assert budget(*rows).wall.ns == (150 + 50 + 200 + 300) / 4


def test_fewer_than_three_steps_are_none() -> None:
    found = budget(*stretch(Phase.WARM_UP, 1, 1), *stretch(Phase.TRACED, 5, 5, 5))
    assert (found.per, found.wall.ns, found.steps.found_by, found.samples) == ("run", 5_000_000, "none", 1_000)
    assert found.warnings == (
        (
            "no step could be measured (5 were seen, and the program ended too soon): the budget is of the whole run;"
            " --step names one"
        ),
    )
    assert budget(*stretch(Phase.WARM_UP, 1, 1, 1)).per == "step"


@pytest.mark.parametrize(
    ("meta", "turns", "warning"),
    [
        ({"reason": "Yama forbids it"}, (), "no stacks: Yama forbids it; nothing says how the time divides"),
        ({}, (), "no stacks: the program ended before one was taken in a step; nothing says how the time divides"),
        (
            {},
            ([main(OUTSIDE, 7)],),
            "no stacks: the program ended before one was taken in a step; nothing says how the time divides",
        ),
    ],
)
def test_without_stacks_nothing_is_attributed(meta: Any, turns: Any, warning: str) -> None:
    found = budget(*bare(100, 200, 300), turns=turns, **meta)
    assert ns_of(found) == {"unattributed": 200}
    assert {each.evidence for each in found.host} == {"none"}
    assert found.category("kernel").ci95_ns == (0.0, 200.0)
    assert warning in found.warnings
    assert found.samples == 0


def test_few_stacks_are_rough() -> None:
    assert budget(*bare(100, 100, 100), turns=([main(WORK, 99)],)).warnings == (
        "99 stacks only: the shares are rough; a longer run narrows them",
    )
    assert budget(*bare(100, 100, 100), turns=([main(WORK, 100)],)).warnings == ()


@pytest.mark.parametrize(
    ("later_ns", "warnings"),
    [
        (1_049, ()),
        (1_051, ("steps of the later half take 5% longer than those of the first: the budget is their mean",)),
        (900, ("steps of the later half take 10% less than those of the first: the budget is their mean",)),
    ],
)
def test_a_drift_is_said(later_ns: int, warnings: tuple[str, ...]) -> None:
    assert budget(*bare(*(9 * [1_000]), 90_000, *(10 * [later_ns]))).warnings == warnings


@pytest.mark.parametrize(("sampled_ns", "unlike"), [(895, True), (900, False), (3_000, False), (3_100, True)])
def test_sampled_steps_that_the_sampler_does_not_explain(sampled_ns: int, unlike: bool) -> None:
    rows = [*bare(*(20 * [1_000])), *stretch(Phase.SAMPLED, 70_000, *(20 * [sampled_ns]))]
    found = budget(*rows)
    assert found.sampling.step_ratio == sampled_ns / 1_000
    said = (
        f"sampled steps took {sampled_ns / 1_000:.2f} times as long as bare ones, which the sampler does not explain: the"
        " program's steps change, or other processes take its cores; the interval covers both, and sampled steps set the"
        " shares"
    )
    assert found.warnings == ((said,) if unlike else ())
    low, high = found.wall.ci95_ns
    every = (7_777 + 20_000 + 70_000 + 20 * sampled_ns) / 42
    assert (low, high) == (1_000.0, every if unlike else 1_000.0)
    assert found.wall.ns == 1_000


@pytest.mark.parametrize(
    ("longest", "unlike"),
    [
        ({"ns": 20_000, "user_ns": 600}, False),  # The sampler stopped it.
        ({"ns": 20_000, "user_ns": 9_000}, False),
        ({"ns": 20_000, "user_ns": 12_000}, True),  # As an evaluation that no bare step holds.
        ({"ns": 20_000, "user_ns": 19_000, "compile_ns": 18_000}, False),
    ],
)
def test_sampled_steps_that_compute_longer(longest: dict[str, int], unlike: bool) -> None:
    steps = 20 * [{"ns": 1_000, "user_ns": 600, "system_ns": 400}]
    found = budget(*stretch(Phase.SAMPLED, 70_000, *steps[1:], longest), *bare(*steps))
    assert found.sampling.step_ratio == 1.95
    said = "sampled steps took 1.95 times as long as bare ones (1.55 times the CPU time), which"
    assert [warning[: len(said)] for warning in found.warnings] == unlike * [said]
    assert found.wall.ci95_ns == (
        1_000.0,
        pytest.approx((70_000 + 39_000 + 7_777 + 20_000) / 42) if unlike else 1_000.0,
    )


def test_without_both_there_is_no_ratio() -> None:
    assert budget(*bare(*(20 * [1_000]))).sampling.step_ratio is None
    # The first step of a stretch is left out.
    rows = [*bare(*(20 * [1_000])), *stretch(Phase.SAMPLED, 9_000), *stretch(Phase.ATTACHING, 9_000)]
    assert budget(*rows).sampling.step_ratio is None
    assert budget(*rows, *stretch(Phase.SAMPLED, 9_000, 2_000)).sampling.step_ratio == 2.0


@pytest.mark.parametrize(("other_ns", "said"), [(3_001, True), (3_000, False), (333, True), (334, False)])
def test_steps_of_two_kinds_are_said(other_ns: int, said: bool) -> None:
    # Two of twenty are a kind, one is an exception.
    warning = (
        "steps are of two kinds: the median takes 1.00 µs, and 10% of them take more than three times or less than a third of"
        " that"
    )
    assert budget(*bare(*(9 * [1_000]), other_ns, *(9 * [1_000]), other_ns)).warnings == ((warning,) if said else ())
    assert budget(*bare(*(19 * [1_000]), other_ns)).warnings == ()


def test_threads_that_could_not_be_placed_are_said_where_they_wait_for_each_other() -> None:
    reason = "the program places its threads on cores itself"
    parallel = main(f"{WORK};gomp_team_barrier_wait_end (libgomp.so.1)", 400)
    found = budget(*bare(*(20 * [1_000])), turns=([main(WORK, 400), main(KERNEL, 200), parallel],), unplaced=reason)
    assert found.warnings == (
        (
            f"{reason}: sampling makes its threads wait for each other, so kernel and wait/parallel are known only together"
            " (600 ns), and may be too large"
        ),
    )
    assert budget(*bare(*(20 * [1_000])), unplaced=reason).warnings == ()


def test_warnings_of_the_recording_come_first() -> None:
    assert budget(*bare(100, 100, 100), warnings=["it was so"], turns=()).warnings[0] == "it was so"


# ---------------------------------------------------------------- regions and threads
def region(name: str, count: int, ns: float, squares_ns2: float, *places: Place) -> StoredRegion:
    return StoredRegion(name, list(places), count, ns, squares_ns2)


def test_regions_have_budgets_of_their_own() -> None:
    places = Place("/home/ada/train.py", "train", 5, 5), Place("/home/ada/model.py", "forward", 0, 0)
    turn = [
        main(WORK, 100),
        main(f"{WORK};forward (model.py:77)", 100),
        main(f"{WORK};clock_nanosleep (libc.so.6)", 100),
        main("train (train.py:6)", 900),
        "thread (11): reader;forward (model.py:3);clock_nanosleep (libc.so.6) 100",
    ]
    found = budget(
        *bare(100, 100, 100),
        turns=(turn,),
        regions=[
            region("unseen", 1, 70.0, 4_900.0, Place("/home/ada/train.py", "gone", 1, 2)),
            # Times 100, 100, 200, 200.
            region("step", 4, 600.0, 100_000.0, *places[:1]),
            region("forward", 10, 500.0, 25_000.0, *places[1:]),
        ],
    )
    step, forward, unseen = found.regions
    assert (step.name, step.count, step.wall.ns) == ("step", 4, 150)
    # A run of an earlier version: no blocks, so Student's t with three degrees of freedom, of the entries themselves.
    factor = math.exp(3.182 * 50 / 3**0.5 / 150)
    assert step.wall.ci95_ns == (pytest.approx(150 / factor, rel=0.005), pytest.approx(150 * factor, rel=0.005))
    assert {each.category: each.ns for each in step.host if each.ns} == {"python": 100, "wait": 50}
    # In any thread.
    assert {each.category: each.ns for each in forward.host if each.ns} == {"python": 25, "wait": 25}
    assert (unseen.name, unseen.wall, unseen.host) == ("unseen", StepWall(70, (70.0, 70.0), interval="none"), ())


def test_the_interval_of_a_region_is_that_of_its_blocks_of_entries() -> None:
    # 6,000 entries in a slow half and a fast half: single entries say that they differ little, blocks that they differ much.
    entries = [300] * 3_000 + [100] * 3_000
    blocks = [(600, 180_000.0)] * 5 + [(600, 60_000.0)] * 5
    squares = float(sum(ns * ns for ns in entries))
    drawn = StoredRegion("half", [], 6_000, 1_200_000.0, squares, blocks)
    (found,) = budget(*bare(100, 100, 100), regions=[drawn]).regions
    # Nine degrees of freedom; the ten blocks' means scatter by 100 * sqrt(10 / 9).
    factor = math.exp(2.262 * 100 * (10 / 9) ** 0.5 / 10**0.5 / 200)
    assert (found.wall.ns, found.wall.interval) == (200, "t over blocks")
    assert found.wall.ci95_ns == (pytest.approx(200 / factor, rel=0.003), pytest.approx(200 * factor, rel=0.003))


def test_a_region_entered_once_has_no_interval() -> None:
    drawn = StoredRegion("once", [HOME], 1, 70.0, 4_900.0, [(1, 70.0)])
    (found,) = budget(*bare(100, 100, 100), regions=[drawn]).regions
    assert found.wall == StepWall(70, (70.0, 70.0), interval="none")
    text = to_text(budget(*bare(100, 100, 100), regions=[drawn]))
    (row,) = [line for line in text.splitlines() if line.startswith("once")]
    assert row.split("  ")[:1] == ["once"]
    assert "70 ns" in row
    assert "no interval" in row


def test_the_categories_of_a_region_hold_what_its_time_may_be_off_by() -> None:
    turn = [main(WORK, 10_000)]
    drawn = StoredRegion("step", [HOME], 2, 300.0, 50_000.0, [(1, 100.0), (1, 200.0)])
    (found,) = budget(*bare(100, 100, 100), turns=(turn,), regions=[drawn]).regions
    low, high = next(each for each in found.host if each.category == "python").ci95_ns
    assert (low, high) == (
        pytest.approx(found.wall.ci95_ns[0], rel=0.01),
        pytest.approx(found.wall.ci95_ns[1], rel=0.01),
    )


def test_a_stack_in_two_places_of_a_region_counts_once() -> None:
    places = Place("/home/ada/train.py", "train", 5, 5), Place("/home/ada/model.py", "forward", 0, 0)
    turn = [main(WORK, 100), main(f"{WORK};forward (model.py:77);clock_nanosleep (libc.so.6)", 100)]
    (step,) = budget(*bare(100, 100, 100), turns=(turn,), regions=[region("step", 2, 200.0, 20_000.0, *places)]).regions
    assert {each.category: each.ns for each in step.host if each.ns} == {"python": 50, "wait": 50}


def test_threads_and_children_stand_beside_it() -> None:
    child = f'process {PID}:"python train.py";process 12:"worker";thread (12): MainThread;decode (data.py:3) 300'
    turns = (
        [*TURN, "thread (11): reader;read (data.py:9) 200", child],
        [*TURN, "thread (11): reader;read (data.py:9);clock_nanosleep (libc.so.6) 600"],
    )
    found = budget(*bare(100, 200, 300), turns=turns)
    assert [(each.name, each.thread, each.process, each.samples, each.wall_ns) for each in found.threads] == [
        ("MainThread", 12, 12, 300, 200),
        ("reader", 11, PID, 800, 200),
    ]
    assert [round(each.busy_share, 3) for each in found.threads] == [1.0, 0.1]
    assert found.samples == 2_000


def test_a_thread_that_lived_for_a_tenth_of_the_time_was_busy_for_a_tenth() -> None:
    turns = ([main(WORK, 200), "thread (11): saver;save (a.py:1) 20"],)
    (saver,) = budget(*bare(100, 200, 300), turns=turns, running=[(11, 0.1)]).threads
    assert (saver.busy_share, saver.seen_share) == (0.1, 0.1)


# ---------------------------------------------------------------- blocks and turns
def test_stacks_of_the_start_count_where_the_turns_have_few() -> None:
    start = [main(WAIT, 400), main(OUTSIDE, 50)]
    enough = run_budget(run_of(*bare(100, 100, 100), start=start, turns=([main(WORK, 100)],)), CLASSIFIER)
    assert (enough.samples, ns_of(enough)) == (100, {"python": 100})
    few = run_budget(run_of(*bare(100, 100, 100), start=start, turns=([main(WORK, 99), main(OUTSIDE, 9)],)), CLASSIFIER)
    assert (few.samples, ns_of(few)) == (499, {"python": 20, "wait": 80})
    assert few.warnings == ("59 of 558 stacks of the thread lie outside the steps and are left out",)


def test_turns_of_earlier_steps_say_nothing_of_these() -> None:
    turns = ([main(WORK, 300)], [main(WAIT, 100), "thread (11): reader;read (data.py:9) 100"])
    found = budget(*bare(*(10 * [100])), turns=turns, earlier=1)
    assert (found.samples, ns_of(found)) == (100, {"wait": 100})
    assert [(each.name, each.busy_share) for each in found.threads] == [("reader", 1.0)]


def test_stacks_that_were_taken_less_often_count_more() -> None:
    drawn = run_of(*bare(100, 100, 100))
    other = "thread (11): reader;read (data.py:9)"
    blocks = [
        block(1, main(WORK, 60), f"{other} 1"),
        block(2, main(WAIT, 28), f"{other};clock_nanosleep (libc.so.6) 1", weight=5),
    ]
    found = run_budget(replace(drawn, blocks=blocks), CLASSIFIER)
    assert (found.samples, ns_of(found)) == (60 + 28, {"python": 30, "wait": 70})
    assert found.warnings == ("88 stacks only: the shares are rough; a longer run narrows them",)
    (reader,) = found.threads
    assert (reader.samples, round(reader.busy_share / reader.seen_share, 3)) == (6, round(1 / 6, 3))


def test_the_steps_of_another_thread() -> None:
    model = "thread (12): model;serve (train.py:20);train (train.py:5)"
    child = f'process {PID}:"x";process 14:"y";thread (12): model;train (train.py:5) 300'
    turn = [f"{model} 300", f"{model};clock_nanosleep (libc.so.6) 100", main(WAIT, 400), child]
    found = budget(*bare(*(10 * [100])), turns=(turn,), thread=12, thread_name="model")
    assert (found.samples, ns_of(found), found.steps.thread) == (400, {"python": 75, "wait": 25}, "model")
    assert [(each.name, each.thread, each.process) for each in found.threads] == [
        ("MainThread", PID, PID),
        ("model", 12, 14),
    ]
    assert validated(found.to_json())["steps"]["thread"] == "model"


def test_other_threads_are_those_of_the_turns_or_of_the_start_where_they_were_gone() -> None:
    reader, gone = "thread (11): reader;read (data.py:9)", "thread (13): gone;f (a.py:1)"
    start = [main(WORK, 9), f"{reader} 500", f"{gone} 70"]
    turns = ([main(WORK, 200), f"{reader};clock_nanosleep (libc.so.6) 200"],)
    found = run_budget(run_of(*bare(100, 100, 100), start=start, turns=turns), CLASSIFIER)
    assert {each.name: (each.samples, each.busy_share) for each in found.threads} == {
        "reader": (200, 0.0),
        "gone": (70, pytest.approx(70 / 200)),
    }


# ---------------------------------------------------------------- slowest steps
USUAL = {"ns": 1_000_000, "user_ns": 900_000, "system_ns": 50_000}


def slow(**changed: int) -> Slow:
    """What is said of a step that takes 11 ms where others take 1 ms."""
    rows = bare(*(20 * [USUAL]), {**USUAL, "ns": 11_000_000, **changed})
    return budget(*rows, compilations=[Compilation(0, 15_000_000, "early")]).slowest[0]


@pytest.mark.parametrize(
    ("changed", "because"),
    [
        ({"gc_ns": 3_000_000}, "garbage collection"),
        ({"gc_ns": 2_900_000, "user_ns": 10_900_000}, "it computed longer"),
        ({"data_ns": 9_000_000, "gc_ns": 4_000_000}, "waiting for data"),
        ({"compile_ns": 9_000_000}, "compilation"),
        ({"faults": 6_000}, "page faults (6,000)"),
        ({"faults": 5_900, "switches": 3}, "a neighbour on the core (3 involuntary switches)"),
        ({}, "it was blocked: not running, and nothing took its core"),
        ({"user_ns": 0, "system_ns": 0}, "unknown: steps this short are not counted in detail"),
    ],
)
def test_why_a_step_was_slow(changed: dict[str, int], because: str) -> None:
    # 3 before the first row, the one that is left out, and 20 usual ones.
    assert slow(**changed) == Slow(3 + 1 + 20, 11_000_000, because)


@pytest.mark.parametrize(
    ("ms", "switches", "because"),
    [
        (11, 5, "it was blocked: not running, and nothing took its core"),
        (11, 6, "a neighbour on the core (6 involuntary switches)"),
        # Eight turns of another program do not last for a third of three seconds, nine may.
        (3_001, 5 + 8, "it was blocked: not running, and nothing took its core"),
        (3_001, 5 + 9, "a neighbour on the core (14 involuntary switches)"),
    ],
)
def test_switches_that_every_step_has_are_no_neighbour(ms: int, switches: int, because: str) -> None:
    usual = {**USUAL, "switches": 5}
    (slowest,) = budget(*bare(*(20 * [usual]), {**usual, "ns": ms * 1_000_000, "switches": switches})).slowest
    assert slowest.because == because


def test_a_recompilation_is_said_with_its_reason() -> None:
    step = {"ns": 9_000, "compile_ns": 8_500}
    steps = table(bare(*(4 * [100]), step, 100, step))
    drawn = run_budget(replace(run_of(), steps=steps), CLASSIFIER)
    assert [each.because for each in drawn.slowest] == ["compilation", "compilation"]
    first, second = (int(steps["end_ns"][at]) - 100 for at in (5, 7))
    compilations = [
        Compilation(0, 900, "before all"),
        Compilation(first - 8_000, first, ""),
        Compilation(second - 8_000, second, f"tensor 'x'\n   size mismatch {200 * 'y'}"),
    ]
    found = budget(*bare(*(4 * [100]), step, 100, step), compilations=compilations)
    assert [(each.step, each.because) for each in found.slowest] == [
        (3 + 5, "compilation"),
        (3 + 7, f"recompilation: tensor 'x' size mismatch {200 * 'y'}"[: len("recompilation: ") + 160]),
    ]


def test_at_most_five_that_take_twice_the_median() -> None:
    steps = [*(20 * [100]), 200, 201, 300, 400, 500, 600, 700]
    found = budget(*bare(*steps))
    assert [each.wall_ns for each in found.slowest] == [700, 600, 500, 400, 300]
    assert [each.wall_ns for each in budget(*bare(*steps[:-5])).slowest] == [201]


def test_a_step_shorter_than_the_mean_is_not_slow() -> None:
    # Median 100, mean 460.
    found = budget(*bare(*(7 * [100]), 250, 500, 3_150))
    assert [(each.step, each.wall_ns) for each in found.slowest] == [(3 + 1 + 9, 3_150), (3 + 1 + 8, 500)]


def test_no_steps_no_slow_ones() -> None:
    columns = [*table(bare(1)).columns, "number", "ns"]
    assert slowest_steps(pd.DataFrame(columns=columns, dtype="int64"), ()) == ()


# ---------------------------------------------------------------- stored and shown
def test_it_is_stored_loaded_and_shown(tmp_path: Path) -> None:
    rows = [*stretch(Phase.WARM_UP, 900), *bare(100, 300, 300, 100)]
    places = [Place("/home/ada/train.py", "train", 5, 5)]
    region_of = StoredRegion("decode", places, 4, 400.0, 41_000.0, [(2, 190.0), (2, 210.0)])
    drawn = run_of(*rows, rank=3, regions=[region_of], exit_code=7)
    turns = (TURN, [*TURN, "thread (11): reader;read (data.py:9) 200"])
    path = store(tmp_path / "r", drawn, turns)
    stored = read_run(path)
    assert stored.meta == drawn.meta
    assert stored.steps is not None
    assert drawn.steps is not None
    pd.testing.assert_frame_equal(stored.steps, drawn.steps)
    blocks = [(each.turn, each.weight, [thread.samples for thread in each.threads]) for each in stored.blocks]
    assert blocks == [(1, 1, [1_000]), (2, 1, [1_000, 200])]
    found = ol.load(path)
    assert isinstance(found, RunBudget)
    document = validated(found.to_json())
    assert document["schema"] == "overhead-lens/run/1"
    assert document["steps"] == {
        "found_by": "optimizer",
        "where": "train.py:7",
        "count": 9,
        "warm_up": 4,
        "measured": 4,
        "thread": "",
    }
    assert (document["command"], document["exit_code"], document["per"]) == (["train.py", "--epochs", "3"], 7, "step")
    assert sum(row["ns"] for row in document["host"]) == document["wall"]["ns"] == 200
    assert document["regions"][0]["wall"]["ns"] == 100
    assert document["regions"][0]["wall"]["interval"] == document["wall"]["interval"] == "t over blocks"
    assert document["device"] is None
    assert found.to_pandas().loc["python", "ns"] == 120
    done = lens("report", "r", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("rank 3: train.py --epochs 3   200 ns per step")


def test_ranks_of_a_job_stand_together(tmp_path: Path) -> None:
    for rank, ns in ((10, 300), (2, 200)):
        store(tmp_path / "job" / f"rank-{rank}", run_of(*bare(ns, ns, ns), rank=rank), (TURN,))
    # One that was killed before it could write its meta.json.
    (tmp_path / "job" / "rank-11").mkdir()
    done = lens("report", "job", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    document = validated(done.stdout)
    assert [(each["wall"]["ns"], each["capture"]) for each in document["ranks"]] == [
        *((200, "job/rank-2"), (300, "job/rank-10"))
    ]
    assert lens("report", "job", cwd=tmp_path).stdout.startswith("2 ranks of one job: train.py")


@pytest.mark.parametrize("file", [STEPS, "stacks.txt.gz", "meta.json"])
def test_a_damaged_run_is_refused_by_name(tmp_path: Path, file: str) -> None:
    path = store(tmp_path / "r", run_of(*bare(1, 2, 3)), (TURN,))
    (path / file).write_bytes((path / file).read_bytes()[:-9])
    done = lens("report", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert " r is damaged: " in error_line(done)
    with pytest.raises(UsageError):
        ol.load(path)


def test_a_region_that_was_never_left_is_damage(tmp_path: Path) -> None:
    path = store(tmp_path / "r", run_of(*bare(1, 2, 3), regions=[region("never", 0, 0.0, 0.0)]), (TURN,))
    with pytest.raises(UsageError, match="count"):
        read_run(path)
