"""Stacks of a run beside the trace of some of its steps, drawn: where they disagree the trace decides how long operators take."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.budget.model import CrossCheck, Reading
from overhead_lens.budget.shares import Shares, reweighted, shares_of_blocks
from overhead_lens.captures.files import KINETO
from overhead_lens.program.area import Phase
from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.stack import Stack
from overhead_lens.studies.run.analysis import RunBudget, run_budget_of
from overhead_lens.studies.run.checks import compared, in_operators, operators_of_stacks
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.rules import Attribution
from tests.documents import validated
from tests.drawn.runs import COMPILING, KERNEL, WAIT, WORK, bare, main, run_of, store, stretch
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY
from tests.drawn.timelines import timed
from tests.drawn.trace_text import document

DISPATCH = f"{WORK};{BINDING};{ENTRY}"
PARALLEL = f"{KERNEL};gomp_team_barrier_wait_end (libgomp.so.1)"
GIL = (
    f"{WORK};at::_ops::mm::call (libtorch_cpu.so);pybind11::gil_scoped_acquire::gil_scoped_acquire (libtorch_python.so)"
    ";pthread_cond_timedwait (libc.so.6)"
)
IN_OPERATOR = f"{WORK};torch::impl::dispatch::PythonKernelHolder::operator() (libtorch_python.so);mine (op.py:3)"
PARTS = {"python": WORK, "wait": WAIT, "kernel": KERNEL, "dispatcher": DISPATCH, "parallel": PARALLEL, "gil": GIL}


def steps_traced(*operators_ns: int, step_ns: int = 1_000, more: tuple[dict, ...] = ()) -> str:
    """A trace of steps of 1 us, each with an operator."""
    windows = [
        timed(number * step_ns, step_ns, f"ProfilerStep#{number}", "user_annotation")
        for number in range(len(operators_ns))
    ]
    operators = [timed(number * step_ns + 100, ns, "aten::mm") for number, ns in enumerate(operators_ns) if ns]
    return document([*windows, *operators, *more])


def budget(folder: Path, *stacks: str, trace: str = "", traced_ns: int = 1_000, bare_ns: int = 1_000) -> RunBudget:
    """Of 20 bare steps and three traced ones."""
    rows = [*bare(*(20 * [bare_ns])), *stretch(Phase.TRACED, *(3 * [traced_ns]))]
    path = store(folder / "run", run_of(*rows), (stacks,))
    if trace:
        (path / KINETO).write_bytes(gzip.compress(trace.encode()))
    return run_budget_of(path, CLASSIFIER)


def ns_of(found: RunBudget) -> dict[str, int]:
    return {each.category: each.ns for each in found.host if each.ns}


@pytest.mark.parametrize(
    ("name", "inside"), [("python", False), ("wait", False), ("kernel", True), ("dispatcher", True), ("parallel", True)]
)
def test_what_an_operator_spends(name: str, inside: bool) -> None:
    (stack,) = parse_stacks([f"{PARTS[name]} 1"])
    assert in_operators(CLASSIFIER.classify(stack).attribution) == inside
    assert in_operators(Attribution("allocation", "page_fault"))
    assert not in_operators(Attribution("wait", "gil"))


# ---------------------------------------------------------------- of a run
def test_where_they_agree_stacks_divide_the_step(tmp_path: Path) -> None:
    found = budget(tmp_path, main(WORK, 590), main(KERNEL, 410), trace=steps_traced(400, 400, 400))
    assert ns_of(found) == {"python": 590, "kernel": 410}
    (check,) = found.cross_checks
    assert (check.category, check.agree) == ("operators", True)
    assert check.samples is not None
    assert check.samples.ns == pytest.approx(410)
    # Recorded steps that took as long as bare ones: the trace is right within 3 % of the step.
    assert check.trace == Reading(400.0, (370.0, 430.0))


def test_where_they_disagree_the_trace_decides(tmp_path: Path) -> None:
    stacks = [main(WORK, 100), main(WAIT, 100), main(KERNEL, 600), main(PARALLEL, 200)]
    found = budget(tmp_path, *stacks, trace=steps_traced(400, 400, 400))
    # 3 % more than the trace shows, which is nearest to the stacks; inside and outside of operators the time divides as these say.
    assert ns_of(found) == {"python": 285, "kernel": 322, "wait": 285 + 108}
    assert {part.name: part.ns for part in found.category("wait").parts if part.ns} == {"parallel": 108, "io": 285}
    (check,) = found.cross_checks
    assert (check.agree, check.samples is not None and check.samples.ns) == (False, 800.0)
    assert sum(frame.ns for frame in found.category("kernel").top) == 322
    low, high = found.category("kernel").ci95_ns
    assert low < 322 < high
    read = validated(found.to_json())["cross_checks"]
    assert [(each["category"], each["agree"]) for each in read] == [("operators", False)]


@pytest.mark.parametrize(
    ("trace", "traced_ns"),
    [
        ("", 1_000),
        (document([timed(0, 900, "aten::mm")]), 1_000),
        # Compiled code runs its kernels in a span of its own, in which a trace sees no operators.
        (
            steps_traced(400, 400, 400, more=(timed(600, 300, "Torch-Compiled Region: 0/0", "user_annotation"),)),
            1_000,
        ),
    ],
)
def test_without_evidence_there_is_no_check(tmp_path: Path, trace: str, traced_ns: int) -> None:
    found = budget(tmp_path, main(WORK, 100), main(KERNEL, 900), trace=trace, traced_ns=traced_ns)
    assert (ns_of(found), found.cross_checks) == ({"python": 100, "kernel": 900}, ())


def test_with_compilations_in_the_steps_there_is_none(tmp_path: Path) -> None:
    rows = [*bare(*(9 * [100]), {"ns": 1_000, "compile_ns": 900}), *stretch(Phase.TRACED, 100, 100, 100)]
    path = store(tmp_path / "run", run_of(*rows), ([main(WORK, 100), main(KERNEL, 900), main(COMPILING, 50)],))
    (path / KINETO).write_bytes(gzip.compress(steps_traced(40, 40, 40, step_ns=100).encode()))
    found = run_budget_of(path, CLASSIFIER)
    assert (ns_of(found), found.cross_checks) == ({"python": 10, "kernel": 90, "compile": 90}, ())


def test_what_recording_costs_is_taken_off(tmp_path: Path) -> None:
    # A step of 3 us was recorded in 4 us: nobody knows how much of the third one is inside of the operator.
    trace = steps_traced(2_000, 2_000, 2_000, step_ns=4_000)
    found = budget(tmp_path, main(WORK, 500), main(KERNEL, 500), trace=trace, traced_ns=4_000, bare_ns=3_000)
    (check,) = found.cross_checks
    # 3 % of the step, and Student's t of three equal steps, beyond the range.
    assert check.trace == Reading(1_500.0, (1_000.0 - 90, 2_000.0 + 90))
    assert validated(found.to_json())["cross_checks"][0]["agree"] is True
    # Recorded steps that met something else say little.
    slow = steps_traced(20_000, 20_000, 20_000, step_ns=40_000)
    found = budget(tmp_path / "slow", main(WORK, 500), main(KERNEL, 500), trace=slow, traced_ns=40_000, bare_ns=3_000)
    assert found.cross_checks[0].trace == Reading(1_500.0, (0.0, 3_000.0))
    # A trace that shows operators does not give them no time.
    brief = steps_traced(1_000, 1_000, 1_000, step_ns=40_000)
    found = budget(tmp_path / "brief", main(WORK, 500), main(KERNEL, 500), trace=brief, traced_ns=40_000, bare_ns=3_000)
    assert found.cross_checks[0].trace == Reading(545.0, (0.0, 1_000.0 + 90))


def test_kernels_of_other_libraries_are_not_in_the_trace(tmp_path: Path) -> None:
    numpy = main(f"{WORK};DOUBLE_add (_multiarray_umath.cpython-311-x86_64-linux-gnu.so)", 200)
    found = budget(tmp_path, main(WORK, 100), numpy, main(KERNEL, 700), trace=steps_traced(300, 300, 300))
    (check,) = found.cross_checks
    assert (check.agree, check.samples is not None and check.samples.ns) == (False, 700.0)
    assert ns_of(found) == {"python": 100, "kernel": 900}


@pytest.mark.parametrize(
    ("below", "host"),
    [(GIL, {"python": 100, "kernel": 200, "wait": 700}), (IN_OPERATOR, {"python": 800, "kernel": 200})],
    ids=["waits for the lock", "is Python"],
)
@pytest.mark.parametrize("operators_ns", [900, 400])
def test_an_operator_that_waits_or_is_python_is_in_the_trace(
    tmp_path: Path, below: str, host: dict[str, int], operators_ns: int
) -> None:
    stacks = main(WORK, 100), main(below, 700), main(KERNEL, 200)
    found = budget(tmp_path, *stacks, trace=steps_traced(*(3 * [operators_ns])))
    (check,) = found.cross_checks
    assert (check.agree, check.samples is not None and check.samples.ns) == (operators_ns == 900, 900.0)
    # The trace does not decide: it cannot tell the two apart.
    assert ns_of(found) == host


def test_what_rare_steps_do_is_unknown_to_the_trace(tmp_path: Path) -> None:
    # Every twentieth step takes 21 us, and none of these was recorded.
    rows = [*bare(*(19 * [1_000]), 21_000), *stretch(Phase.TRACED, *(3 * [1_000]))]
    path = store(tmp_path / "run", run_of(*rows), ([main(WORK, 300), main(KERNEL, 700)],))
    (path / KINETO).write_bytes(gzip.compress(steps_traced(400, 400, 400).encode()))
    found = run_budget_of(path, CLASSIFIER)
    (check,) = found.cross_checks
    assert check.trace == Reading(900.0, (400.0 - 60, 1_400.0 + 60))
    assert (check.agree, ns_of(found)) == (True, {"python": 600, "kernel": 1_400})


def test_what_rare_steps_did_while_recorded_is_taken_off(tmp_path: Path) -> None:
    rows = [*bare(*(20 * [1_000])), *stretch(Phase.TRACED, 1_600, 1_000, 1_000)]
    path = store(tmp_path / "run", run_of(*rows), ([main(WORK, 590), main(KERNEL, 410)],))
    (path / KINETO).write_bytes(gzip.compress(steps_traced(500, 500, 500).encode()))
    (check,) = run_budget_of(path, CLASSIFIER).cross_checks
    assert check.trace == Reading(400.0, (500.0 - 200 - 30, 500.0 + 30))


@pytest.mark.parametrize(
    ("last_ns", "traced_ns"),
    [
        (900, (1_000, 1_000)),  # The program ended in a step.
        (500, (1_000, 1_000, 5_000_000)),  # The recording ended in one.
    ],
)
def test_a_recorded_step_without_its_end_does_not_count(
    tmp_path: Path, last_ns: int, traced_ns: tuple[int, ...]
) -> None:
    rows = [*bare(*(20 * [1_000])), *stretch(Phase.TRACED, *traced_ns)]
    path = store(tmp_path / "run", run_of(*rows), ([main(WORK, 590), main(KERNEL, 410)],))
    cut = (timed(2_000, last_ns, "ProfilerStep#2", "user_annotation"), timed(2_000, last_ns, "aten::mm"))
    (path / KINETO).write_bytes(gzip.compress(steps_traced(400, 400, more=cut).encode()))
    (check,) = run_budget_of(path, CLASSIFIER).cross_checks
    assert check.trace == Reading(400.0, (370.0, 430.0))


def test_an_autograd_function_is_python(tmp_path: Path) -> None:
    functions = tuple(timed(number * 1_000 + 50, 900, "CheckpointFunctionBackward") for number in range(3))
    found = budget(tmp_path, main(WORK, 590), main(KERNEL, 410), trace=steps_traced(400, 400, 400, more=functions))
    assert found.cross_checks[0].trace == Reading(400.0, (370.0, 430.0))


# ---------------------------------------------------------------- deciding
def reading(ns: float, low: float, high: float) -> Reading:
    return Reading(ns, (low, high))


@pytest.mark.parametrize(
    ("samples", "trace", "agree"),
    [
        (reading(5, 4, 6), reading(7, 6, 8), True),
        (reading(5, 4, 6), reading(7, 6.1, 8), False),
        (reading(7, 6, 8), reading(5, 4, 6), True),
        (reading(7, 6.1, 8), reading(5, 4, 6), False),
        (reading(5, 0, 9), reading(5, 4, 6), True),
    ],
)
def test_they_agree_where_their_intervals_meet(samples: Reading, trace: Reading, agree: bool) -> None:
    assert compared(samples, trace) == CrossCheck("operators", samples, trace, None, agree)


def blocks(**counts: int) -> list[list[Stack]]:
    """Ten blocks with these counts of stacks each."""
    lines = [f"{PARTS[name]} {count}" for name, count in counts.items() if count]
    return [list(parse_stacks(lines)) for _ in range(10)]


def shares(counts: dict[str, int]) -> Shares:
    return shares_of_blocks(blocks(**counts), CLASSIFIER)


def inside_share(found: Shares) -> float:
    weights = {attribution: weight for attribution, weight in found.attributions.items() if in_operators(attribution)}
    return sum(weights.values()) / sum(found.attributions.values())


COUNTS = st.fixed_dictionaries({name: st.integers(0, 50) for name in PARTS})


@given(COUNTS, st.floats(0.0, 1.0))
def test_deciding_gives_the_traces_share_and_keeps_the_sum(counts: dict[str, int], share: float) -> None:
    if not sum(counts.values()):
        return
    before = shares(counts)
    after = reweighted(before, in_operators, share)
    assert sum(after.attributions.values()) == pytest.approx(before.weight)
    frames = sum(sum(weights.values()) for weights in after.frames.values())
    assert frames == pytest.approx(before.weight)
    np.testing.assert_allclose(after.replicates.sum(axis=1), 1.0)
    if 0.0 < inside_share(before) < 1.0:
        assert inside_share(after) == pytest.approx(share)
    else:
        # Nothing says how what stacks have not seen divides.
        assert after == before
    for attribution, weight in before.attributions.items():
        side = [each for each in before.attributions if in_operators(each) == in_operators(attribution)]
        was = weight / sum(before.attributions[each] for each in side)
        now = sum(after.attributions[each] for each in side)
        assert after.attributions[attribution] == pytest.approx(was * now)


def test_the_trace_may_say_that_there_are_none() -> None:
    after = reweighted(shares({"python": 10, "kernel": 30}), in_operators, 0.0)
    assert [after.share(name) for name in HOST_CATEGORIES if name in ("python", "kernel")] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ({"python": 60, "kernel": 25, "dispatcher": 10, "parallel": 5}, 0.4),
        ({"python": 50, "parallel": 50}, 0.5),
        # Waiting for the team is inside of an operator, other waiting is where its caller is an operator.
        ({"gil": 30, "wait": 30, "kernel": 40}, 0.7),
        ({"wait": 50, "parallel": 50}, 0.5),
        ({"parallel": 20, "kernel": 80}, 1.0),
        ({"python": 100}, 0.0),
    ],
)
def test_the_reading_of_stacks(counts: dict[str, int], share: float) -> None:
    found = operators_of_stacks(blocks(**counts), 1_000.0, CLASSIFIER)
    # 1,000 stacks, binomial.
    half = 1.96 * (share * (1 - share) / 1_000) ** 0.5 * 1_000
    assert found.ns == pytest.approx(1_000 * share)
    low, high = found.ci95_ns
    assert (low, high) == (pytest.approx(1_000 * share - half, abs=3), pytest.approx(1_000 * share + half, abs=3))
    assert 0 <= low < high <= 1_000


def test_blocks_that_differ_make_a_wider_interval() -> None:
    def width(drawn: list[list[Stack]]) -> float:
        low, high = operators_of_stacks(drawn, 1_000.0, CLASSIFIER).ci95_ns
        return high - low

    apart = [*blocks(python=100)[:5], *blocks(kernel=100)[:5], []]
    assert width(apart) > 4 * width(blocks(python=50, kernel=50))
    # A single block has the interval of its counts.
    (one,) = [[*blocks(python=250)[0], *blocks(kernel=250)[0]]]
    assert width([one]) == pytest.approx(2 * 1.96 * (0.25 / 500) ** 0.5 * 1_000, rel=0.05)
