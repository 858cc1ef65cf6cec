from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from overhead_lens.budget.make import Budget, make_budget
from overhead_lens.budget.model import Breakdown, DeviceKernel, DeviceShare, Guard, Operator
from overhead_lens.budget.thresholds import LISTED_KERNELS
from overhead_lens.budget.wall import Waited
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.budgets import median_per_process, rescaled
from overhead_lens.comparison.contributors import guard_kinds_in_words, more_guards
from overhead_lens.comparison.difference import category_verdicts, compare_budgets, differences, wall_verdict
from overhead_lens.comparison.model import Delta
from overhead_lens.stats.shift import Shift, level, unpaired_shift
from overhead_lens.studies.check.limits import check_limits, parse_limit
from overhead_lens.subject import Kind, Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.units import format_signed_ns
from tests.comparison.budgets import budget, timed
from tests.drawn.builders import breakdown
from tests.drawn.captures import META, ROW, evidence
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, USER, stack


def in_turns(*budgets: Budget) -> list[Budget]:
    return [replace(each, recorded_with="one recording") for each in budgets]


def recompiling(compile_ns: int) -> Budget:
    """Five processes with four blocks of ten calls of 100 ns, one of which compiles once, for so long."""
    rows = [
        ROW | {"process": number // 4, "block": number % 4, "calls": 10, "wall_ns": 1_000, "compiles": 0}
        for number in range(20)
    ]
    for row in rows[3::4] if compile_ns else ():
        row |= {"wall_ns": 1_000 + compile_ns, "compiles": 1}
    compiling = stack(USER, "_compile (torch/_dynamo/convert_frame.py)", count=4 * compile_ns // 40)
    stacks = [[stack(USER, count=1_000), *[compiling] * bool(compile_ns)]] * 5
    return make_budget(evidence(META, pd.DataFrame(rows), stacks), CLASSIFIER)


def test_a_side_that_compiles_at_times_is_slower_by_that() -> None:
    delta = compare_budgets(recompiling(0), recompiling(16_000))
    assert (delta.wall_delta_ns, delta.verdict, delta.blame[0]) == (400, "slower", "compile")
    assert delta.host[HOST_CATEGORIES.index("compile")].delta_ns == 400


def test_slower_and_who_is_to_blame() -> None:
    delta = compare_budgets(
        budget(0.001, python=1_000, allocation=1_000, kernel=100),
        budget(0.001, python=1_100, allocation=4_000, kernel=100),
    )
    assert (delta.verdict, delta.blame) == ("slower", ("allocation", "python"))
    assert abs(delta.wall_delta_ns - 3_100) < 10
    allocation = delta.host[HOST_CATEGORIES.index("allocation")]
    assert delta.sentence.startswith(f"{delta.wall_delta_ns / 1_000:.2f} µs slower: allocation +")
    assert allocation.contributors[0].kind == "frame"
    assert allocation.contributors[0].name == "allocation_frame"
    assert abs(allocation.contributors[0].delta_ns - 3_000) < 10


def test_stacks_and_a_trace_blame_no_category() -> None:
    base, new = budget(0.001, python=1_000, kernel=100), budget(0.001, python=4_000, kernel=100)
    host = tuple(replace(each, evidence="trace" if each.ns else "none") for each in new.breakdown.host)
    delta = compare_budgets(base, replace(new, breakdown=replace(new.breakdown, host=host)))
    assert (delta.verdict, delta.blame) == ("slower", ())
    assert {change.verdict for change in delta.host} == {"inconclusive"}
    line = "the base's categories are divided by samples, the new capture's by trace: no category can be blamed"
    assert line in delta.warnings


def test_settings_of_torch_that_differ_are_named() -> None:
    plain = budget(0.001, python=1_000)

    def under(**environment: Any) -> Budget:
        return replace(plain, breakdown=replace(plain.breakdown, environment=environment))

    base = under(float32_matmul="highest", settings={"cudnn_benchmark": False, "cudnn_enabled": True, "gone": 1})
    new = under(float32_matmul="high", settings={"cudnn_benchmark": True, "cudnn_enabled": True, "came": 1})
    line = "torch's settings differ: float32_matmul: 'highest' against 'high'; cudnn_benchmark: False against True"
    assert [line] == [each for each in compare_budgets(base, new).warnings if each.startswith("torch's")]
    for unknown in (under(), plain):
        assert not any("settings" in each for each in compare_budgets(base, unknown).warnings)


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        (budget(0.001, python=1_000), budget(0.001, python=1_000), "same"),
        (budget(0.001, python=1_000), budget(0.001, python=1_005), "same"),
        (budget(0.0001, python=10_000), budget(0.0001, python=10_050), "same"),
        (budget(0.0001, python=10_000), budget(0.0001, python=10_150), "slower"),
        (budget(0.001, python=1_000), budget(0.001, python=900), "faster"),
        (budget(0.2, python=1_000), budget(0.2, python=1_100), "inconclusive"),
        (budget(0.2, python=1_000), budget(0.2, python=1_001), "inconclusive"),
    ],
)
def test_verdicts(base: Budget, new: Budget, verdict: str) -> None:
    delta = compare_budgets(base, new)
    assert delta.verdict == verdict
    assert bool(delta.blame) == (verdict in ("faster", "slower"))


def shift(ns: float, error_ns: float = 1.0, degrees_of_freedom: float = 10.0, count: int = 11) -> Shift:
    return Shift(ns, error_ns, degrees_of_freedom, count)


@pytest.mark.parametrize(
    ("ns", "verdict"),
    # The 95 % interval is 2.228 on either side, the 90 % interval 1.812.
    [
        (0.0, "inconclusive"),
        (2.22, "inconclusive"),
        (2.23, "slower"),
        (-2.22, "inconclusive"),
        (-2.23, "faster"),
    ],
)
def test_the_verdict_beyond_a_narrow_margin(ns: float, verdict: str) -> None:
    assert wall_verdict(shift(ns), margin_ns=1.0) == verdict


@pytest.mark.parametrize(
    ("ns", "verdict"),
    [(0.0, "same"), (2.5, "same"), (3.18, "same"), (3.19, "slower"), (-3.18, "same"), (-3.19, "faster")],
)
def test_within_the_margin_it_is_the_same_even_if_clear_of_zero(ns: float, verdict: str) -> None:
    assert wall_verdict(shift(ns), margin_ns=5.0) == verdict


def test_categories_are_corrected_for_looking_at_all_that_were_seen() -> None:
    # Two-sided p of t = 2.7 with 10 degrees of freedom: 0.022, of 4: 0.0025, of 3.1: 0.011; frames have the other half of 5 %.
    unseen = shift(0.0, 0.0)
    assert category_verdicts([shift(2.7), unseen], 1.0) == ["slower", "same"]
    assert category_verdicts([shift(2.6), unseen], 1.0) == ["inconclusive", "same"]
    assert category_verdicts([shift(2.7), shift(0.1)], 1.0) == ["inconclusive", "inconclusive"]
    assert category_verdicts([shift(-2.7), shift(4.0), shift(3.1)], 1.0) == ["faster", "slower", "slower"]
    assert category_verdicts([shift(2.7), shift(0.1), shift(0.1)], 100.0) == ["same"] * 3
    # A category may have moved though it did so within the margin of the whole call.
    assert category_verdicts([shift(4.0)], 100.0) == ["slower"]


SIZES = st.fixed_dictionaries({name: st.integers(0, 10_000) for name in HOST_CATEGORIES})
SPREADS = st.sampled_from([0.0, 0.01, 0.3])


def compared(base: dict[str, int], new: dict[str, int], spread: float, turns: bool, **how: int) -> tuple[Delta, Delta]:
    """The difference of two sides, and that of the swapped ones."""
    sides = [budget(spread, **base), budget(spread, **how, **new)]
    old, recent = in_turns(*sides) if turns else sides
    return compare_budgets(old, recent), compare_budgets(recent, old)


@settings(max_examples=60)
@given(
    base=SIZES,
    new=SIZES,
    spread=SPREADS,
    turns=st.booleans(),
    reference_ns=st.integers(100, 2_000),
    processes=st.integers(1, 7),
)
# Taken to one speed, a frame of a nanosecond moves by a twentieth of one.
@example(
    base=dict.fromkeys(HOST_CATEGORIES, 0) | {"compile": 2, "unattributed": 1},
    new=dict.fromkeys(HOST_CATEGORIES, 0) | {"unattributed": 1},
    spread=0.0,
    turns=False,
    reference_ns=1057,
    processes=2,
)
# Frames say that `unattributed` became faster, and its own estimate that it did not.
@example(
    base=dict.fromkeys(HOST_CATEGORIES, 0) | {"launch": 3089, "wait": 10_000, "compile": 10_000, "unattributed": 5713},
    new=dict.fromkeys(HOST_CATEGORIES, 0)
    | {"python": 78, "guard": 4619, "dispatcher": 13, "allocation": 6, "kernel": 35, "launch": 1501}
    | {"wait": 10_000, "compile": 6148, "unattributed": 5748},
    spread=0.01,
    turns=True,
    reference_ns=100,
    processes=1,
)
def test_the_categories_account_for_the_whole_difference_and_swapping_negates_it(
    base: dict[str, int], new: dict[str, int], spread: float, turns: bool, reference_ns: int, processes: int
) -> None:
    how = {"reference_ns": reference_ns} if turns else {"reference_ns": reference_ns, "processes": processes}
    delta, swapped = compared(base, new, spread, turns, **how)
    assert sum(change.delta_ns for change in delta.host) == delta.wall_delta_ns
    assert delta.new.wall.ns - delta.base.wall.ns == delta.wall_delta_ns == -swapped.wall_delta_ns
    assert [change.delta_ns for change in delta.host] == [-change.delta_ns for change in swapped.host]
    assert delta.wall_ci95_ns == pytest.approx([-bound for bound in reversed(swapped.wall_ci95_ns)], rel=1e-9, abs=1e-6)
    for change, other in zip(delta.host, swapped.host, strict=True):
        assert change.ci95_ns[0] <= change.delta_ns <= change.ci95_ns[1]
        assert all(math.isfinite(bound) for bound in change.ci95_ns)
        assert change.ci95_ns == pytest.approx([-bound for bound in reversed(other.ci95_ns)], rel=1e-9, abs=1e-6)
    assert set(delta.blame) <= {change.category for change in delta.host if change.size_ns * delta.wall_delta_ns > 0}


@settings(max_examples=40)
@given(sizes=SIZES, spread=SPREADS, turns=st.booleans())
def test_equal_data_are_never_slower_or_faster(sizes: dict[str, int], spread: float, turns: bool) -> None:
    delta, _ = compared(sizes, sizes, spread, turns)
    assert delta.verdict in ("same", "inconclusive")
    assert (delta.wall_delta_ns, delta.blame) == (0, ())
    assert delta.verdict == "same" or not turns


def test_rounds_are_compared_in_pairs() -> None:
    """Rounds that differ by a third hide 2 % from processes compared one by one, and not from pairs."""
    base = budget(0.3, python=10_000)
    new = timed(base, 1.02 * base.blocks["call_ns"])
    assert compare_budgets(base, new).verdict == "inconclusive"
    paired = compare_budgets(*in_turns(base, new))
    assert (paired.verdict, paired.blame) == ("slower", ("python",))
    strangers = compare_budgets(replace(base, recorded_with="one"), replace(new, recorded_with="another"))
    assert strangers.verdict == "inconclusive"


def test_the_only_category_is_as_uncertain_as_the_wall() -> None:
    delta = compare_budgets(*in_turns(budget(0.1, python=1_000), budget(0.1, python=1_500)))
    python = delta.host[HOST_CATEGORIES.index("python")]
    assert python.ci95_ns == pytest.approx(delta.wall_ci95_ns)
    assert delta.wall_ci95_ns[1] - delta.wall_ci95_ns[0] > 50


def test_one_round_among_ten_that_met_a_neighbour_decides_nothing() -> None:
    base = budget(0.001, processes=10, python=10_000)
    met = base.blocks["process"] == 3
    new = timed(base, base.blocks["call_ns"].where(~met, 18_000.0))
    assert compare_budgets(*in_turns(base, new)).verdict == "same"


def test_a_round_is_worth_the_mean_of_its_compilations() -> None:
    """Of four compilations one is 400 ns slower by chance: 100 ns, where a median of all blocks would see none of it."""
    base = budget(python=10_000)
    blocks = base.blocks.assign(compilation=base.blocks["block"])
    slower = blocks["call_ns"] + 400.0 * (blocks["compilation"] == blocks["process"] % 4)
    sides = [replace(base, blocks=blocks.assign(call_ns=ns, mean_ns=ns)) for ns in (blocks["call_ns"], slower)]
    delta = compare_budgets(*in_turns(*sides))
    assert (delta.wall_delta_ns, delta.base.wall.ns, delta.new.wall.ns) == (100, 10_000, 10_100)


@pytest.mark.parametrize("sign", [1, -1])
def test_what_happens_rarely_counts_where_the_sides_differ_in_it(sign: int) -> None:
    """300 ns more in the mean of blocks whose steady time is the same: garbage collected every now and then, say."""
    random = np.random.default_rng(5)
    base = budget(0.001, processes=10, python=10_000)
    steady = base.blocks["call_ns"]

    def with_rare(more_ns: float) -> Budget:
        rare_ns = random.normal(400.0, 50.0, len(steady)) + more_ns
        return replace(base, blocks=base.blocks.assign(mean_ns=steady + rare_ns))

    pair = [with_rare(0.0), with_rare(300.0)][::sign]
    delta = compare_budgets(*in_turns(*pair))
    assert delta.verdict == ("slower" if sign == 1 else "faster")
    assert abs(delta.wall_delta_ns - sign * 300) < 25
    assert delta.base.wall.ns + delta.new.wall.ns == pytest.approx(2 * 10_000 + 2 * 400 + 300, abs=50)
    rare = f"{format_signed_ns(delta.wall_delta_ns)} of the difference comes from calls that take longer now and then"
    assert delta.warnings == (f"{rare}: the means of blocks are compared, not their steady time",)


def test_rare_pieces_that_hit_both_sides_do_not_count() -> None:
    random = np.random.default_rng(5)
    base = budget(0.001, processes=10, python=10_000)
    steady = base.blocks["call_ns"]
    sides = [
        replace(base, blocks=base.blocks.assign(mean_ns=steady + random.exponential(2_000.0, len(steady))))
        for _ in range(2)
    ]
    delta = compare_budgets(*in_turns(*sides))
    assert (delta.verdict, delta.wall_delta_ns, delta.warnings) == ("same", 0, ())
    assert delta.base.wall.ns == pytest.approx(10_000, abs=10)


@pytest.mark.parametrize(("in_pieces", "compared_ns"), [((0, 1), 10_300), ((1, 0), 10_300), ((1, 1), 10_000)])
def test_slow_pieces_count_on_both_sides_or_on_neither(in_pieces: tuple[int, int], compared_ns: int) -> None:
    """The time of a block includes its slow pieces; only blocks timed in pieces have a time without them."""
    whole = budget(0.001, python=10_300)
    blocks = whole.blocks.assign(call_ns=whole.blocks["call_ns"] - 300.0)
    base, new = (replace(whole, blocks=blocks) if each else whole for each in in_pieces)
    delta = compare_budgets(base, new)
    assert (delta.verdict, delta.wall_delta_ns) == ("same", 0)
    assert delta.base.wall.ns == pytest.approx(compared_ns, abs=10)


def test_drift_of_the_machine_is_taken_out_and_told() -> None:
    base = budget(0.001, python=10_000)
    slow = timed(base, 1.2 * base.blocks["call_ns"], reference_ns=840)
    delta = compare_budgets(base, slow)
    assert delta.verdict == "same"
    assert delta.warnings[0] == (
        "the reference loop ran 20.0% slower beside the new capture: both sides are taken to one speed of the machine"
    )
    in_one_recording = compare_budgets(*in_turns(base, slow))
    assert (in_one_recording.verdict, in_one_recording.warnings) == ("slower", ())


def with_device(made: Budget, busy_ns: int, waited_ns: int = 0) -> Budget:
    """The budget with a device that is busy for so long, for which the host waits for ``waited_ns``."""
    own = {each.category: each.ns for each in made.breakdown.host}
    idle_ns = made.breakdown.wall.ns - busy_ns
    device = DeviceShare("0", "cuda", 1.0, busy_ns, idle_ns, busy_ns, 0, 0, 0, {"launch": idle_ns}, 1.0, 1, 1, 0.0)
    return replace(made, breakdown=replace(breakdown({"wait": {"device": waited_ns}}, **own), device=device))


WALL = 10_000


@pytest.mark.parametrize(
    ("base", "decided"),
    [
        # A device that works all the time, for which the host waits; one that works beside a host that never waits.
        (with_device(budget(python=1_000, wait=9_000), WALL, 9_000), 0.0),
        (with_device(budget(python=WALL), 5_000), 1.0),
        # Host and device in turns; both at once for 2 µs, in which the processor decides as much as elsewhere.
        (with_device(budget(python=4_000, wait=6_000), 6_000, 6_000), 0.4),
        (with_device(budget(python=4_000, wait=6_000), 8_000, 6_000), 0.25),
        (replace(budget(wait=WALL), breakdown=breakdown({"wait": {"io": 9_000, "lock": 1_000}}, wait=WALL)), 0.1),
    ],
)
def test_a_slower_processor_slows_neither_a_device_nor_io(base: Budget, decided: float) -> None:
    same = timed(base, 1.2**decided * base.blocks["call_ns"], reference_ns=840)
    assert compare_budgets(base, same).wall_delta_ns == compare_budgets(same, base).wall_delta_ns == 0
    slower = timed(base, 1.2**decided * base.blocks["call_ns"] + 1_000, reference_ns=840)
    assert compare_budgets(base, slower).verdict == "slower"


@pytest.mark.parametrize(
    ("base", "new"),
    [
        # The processor of the second capture is 20 % slower: so is Python, and what waits for a device ends no later.
        (
            with_device(budget(python=1_000, wait=9_000), WALL, 9_000),
            with_device(budget(python=1_200, wait=8_800), WALL, 8_800),
        ),
        (
            with_device(budget(python=5_000, wait=5_000), 5_000, 5_000),
            with_device(budget(python=6_000, wait=5_000), 5_000, 5_000),
        ),
    ],
)
def test_a_slower_processor_slows_its_own_categories_by_all_of_it(base: Budget, new: Budget) -> None:
    delta = compare_budgets(base, timed(new, new.blocks["call_ns"], reference_ns=840))
    assert max(abs(change.delta_ns) for change in delta.host) <= 20
    assert {change.verdict for change in delta.host} == {"same"}
    for side in (delta.base, delta.new):
        assert [each.share for each in side.host] == pytest.approx(
            [each.ns / side.wall.ns for each in side.host], abs=1e-3
        )
    limits = [parse_limit("python=100ns"), parse_limit("wait=100ns")]
    assert [found.state for found in check_limits(delta, limits)] == ["kept", "kept"]
    swapped = compare_budgets(timed(new, new.blocks["call_ns"], reference_ns=840), base)
    assert [change.delta_ns for change in swapped.host] == [-change.delta_ns for change in delta.host]


def test_operators_and_guards_of_a_slower_processor_are_taken_to_one_speed_as_their_category_is() -> None:
    def recorded(waited_ns: int, dispatcher: int, guard: int) -> Budget:
        made = with_device(budget(dispatcher=dispatcher, guard=guard, wait=waited_ns), WALL, waited_ns)
        add = Operator("aten::add", dispatcher, dispatcher, {"dispatcher": dispatcher})
        call = Operator("call", WALL, WALL - dispatcher, {"guard": guard, "wait": waited_ns}, (add,))
        return replace(
            made,
            breakdown=replace(made.breakdown, operators=call, guards=(Guard("ID_MATCH", float(guard)),)),
        )

    base, new = recorded(8_000, 1_000, 1_000), recorded(7_600, 1_200, 1_200)
    delta = compare_budgets(base, timed(new, new.blocks["call_ns"], reference_ns=840))
    assert [move for change in delta.host for move in change.contributors] == []


def test_a_machine_that_was_busier_beside_one_side_widens_the_intervals() -> None:
    base, slow = budget(0.001, python=10_000), budget(0.001, python=11_000)
    usual = compare_budgets(base, slow)
    busier = compare_budgets(
        replace(base, waited=Waited(0.1, 0.05)), replace(slow, waited=Waited(delayed=0.5, contended=0.25))
    )
    assert (usual.verdict, busier.verdict, busier.wall_delta_ns) == ("slower", "inconclusive", usual.wall_delta_ns)
    assert busier.sentence.endswith("; no number of processes would decide")
    further_ns = (0.25 * 0.4 + 0.2) * level(median_per_process(slow, "call_ns"))
    wider = unpaired_shift(median_per_process(base, "call_ns"), median_per_process(slow, "call_ns"), further_ns)
    assert np.diff(busier.wall_ci95_ns) == pytest.approx(np.diff(wider.interval()), rel=1e-3)
    assert busier.warnings == (
        (
            "the machine was busier: threads waited for a core 75% of the time beside the new capture, 15% beside the base; "
            "the intervals are wider for it"
        ),
    )
    alike = Waited(0.5, 0.0)
    assert compare_budgets(replace(base, waited=alike), replace(slow, waited=alike)) == usual


@pytest.mark.parametrize(
    ("other", "warnings"),
    [
        ({"python": "3.12"}, ()),
        (
            {"reference": "another loop"},
            ("the two captures timed different reference loops: what the machine's speed changed is not taken out",),
        ),
    ],
)
def test_different_reference_loops_do_not_tell_a_drift(other: dict[str, str], warnings: tuple[str, ...]) -> None:
    base = budget(0.001, python=10_000)
    slow = timed(base, 1.2 * base.blocks["call_ns"], reference_ns=840)
    slow = replace(slow, breakdown=replace(slow.breakdown, environment=other))
    delta = compare_budgets(base, slow)
    assert (delta.verdict, delta.warnings) == ("slower", warnings)


def short(call_ns: float, python: int, kernel: int) -> Budget:
    """A call of some 30 ns, by five processes of almost the same time and equal stacks."""
    row = ROW | {"calls": 10_000, "minor_faults": 0}
    clock = pd.DataFrame(
        [
            row | {"process": process, "block": block, "wall_ns": round(10_000 * call_ns) + 10 * (process - 2)}
            for process in range(5)
            for block in range(4)
        ]
    )
    stacks = [
        stack(USER, count=python),
        stack(USER, BINDING, ENTRY, "at::native::add_kernel (libtorch_cpu.so)", count=kernel),
    ]
    return make_budget(evidence(META, clock, [stacks] * 5), CLASSIFIER)


def test_a_difference_of_less_than_a_nanosecond_is_judged_before_it_is_rounded() -> None:
    delta = compare_budgets(short(30.0, 100, 100), short(30.45, 100, 100))
    assert (delta.verdict, delta.wall_delta_ns, delta.blame) == ("slower", 0, ())
    assert delta.wall_ci95_ns == pytest.approx((0.45, 0.45), abs=0.01)
    assert delta.sentence == "0.45 ns slower: no single category moved clearly"
    swapped = compare_budgets(short(30.45, 100, 100), short(30.0, 100, 100))
    assert (swapped.verdict, swapped.wall_delta_ns) == ("faster", 0)


def test_a_category_that_rounds_to_another_nanosecond_did_not_move() -> None:
    # 16.485 and 16.515 ns of 30: 16 and 17. The error of the stacks is 0.095 ns.
    delta = compare_budgets(short(30.0, 5_495, 4_505), short(30.0, 5_505, 4_495))
    changes = {change.category: change for change in delta.host}
    assert [(changes[name].delta_ns, changes[name].verdict) for name in ("python", "kernel")] == [
        (1, "same"),
        (-1, "same"),
    ]


def test_inconclusive_says_how_many_processes_would_decide() -> None:
    delta = compare_budgets(budget(0.05, python=1_000), budget(0.05, python=1_030))
    assert delta.verdict == "inconclusive"
    assert "more processes a side would decide" in delta.sentence
    close = compare_budgets(budget(0.01, python=1_000), budget(0.01, python=1_015))
    assert close.sentence.endswith("; about 1 more process a side would decide")
    assert delta.detectable_share == (delta.wall_ci95_ns[1] - delta.wall_ci95_ns[0]) / 2 / delta.base.wall.ns


def with_guards(made: Budget, tensor_matches: int) -> Budget:
    guards = (
        *(Guard(f"TENSOR_MATCH L['x{index}']", 50.0) for index in range(tensor_matches)),
        Guard("GLOBAL_STATE ___check_global_state()", 10.0),
        Guard("cache lookup and walk of the guard tree", 40.0),
    )
    return replace(made, breakdown=replace(made.breakdown, guards=guards))


def test_kinds_of_guards_that_came_and_went() -> None:
    def kinds(**counts: int) -> Breakdown:
        guards = tuple(Guard(f"{kind} L['x{at}']", 1.0) for kind, count in counts.items() for at in range(count))
        return replace(breakdown(guard=100), guards=(*guards, Guard("cache lookup", 1.0)))

    base, new = kinds(TENSOR_MATCH=2, DICT_VERSION=3, ID_MATCH=1), kinds(TENSOR_MATCH=38, LAMBDA_GUARD=2, ID_MATCH=1)
    told = guard_kinds_in_words(base, new)
    assert told == "new kinds: 2 LAMBDA_GUARD; kinds that are gone: 3 DICT_VERSION; 36 more TENSOR_MATCH"
    back = guard_kinds_in_words(new, base)
    assert back == "new kinds: 3 DICT_VERSION; kinds that are gone: 2 LAMBDA_GUARD; 36 fewer TENSOR_MATCH"
    assert (
        guard_kinds_in_words(base, base)
        == guard_kinds_in_words(kinds(), new)
        == guard_kinds_in_words(new, kinds())
        == ""
    )


def test_guards_that_only_stacks_show_are_not_counted() -> None:
    listed = (Guard("TENSOR_MATCH L['x']", 50.0), Guard("GLOBAL_STATE ___check_global_state()", 10.0))
    base = replace(breakdown(guard=100), guards=listed)
    new = replace(breakdown(guard=100), guards=(*listed, Guard("BACKEND_MATCH", 2.0)))
    unlisted = replace(breakdown(guard=100), guards=(Guard("TENSOR_MATCH", 50.0), Guard("BACKEND_MATCH", 2.0)))
    for one, other in ((base, new), (base, unlisted)):
        assert guard_kinds_in_words(one, other) == guard_kinds_in_words(other, one) == ""
        assert more_guards(one, other) == more_guards(other, one) == []
    assert more_guards(breakdown(python=100), base) == [("GLOBAL_STATE", 1), ("TENSOR_MATCH", 1)]


def test_the_sentence_counts_guards_by_kind() -> None:
    base, new = budget(python=2_000, guard=100), budget(python=2_200, guard=1_900)
    delta = compare_budgets(with_guards(base, 1), with_guards(new, 37))
    assert delta.sentence == "2.00 µs slower: guard +1.80 µs (36 more TENSOR_MATCH), python +200 ns in python_frame"
    guard = delta.host[HOST_CATEGORIES.index("guard")]
    assert ("guard", "36 more TENSOR_MATCH", 1_800) in {
        (move.kind, move.name, move.delta_ns) for move in guard.contributors
    }
    swapped = compare_budgets(with_guards(new, 37), with_guards(base, 1))
    assert swapped.sentence == "2.00 µs faster: guard -1.80 µs (36 fewer TENSOR_MATCH), python -200 ns in python_frame"


def test_operators_and_kernels_that_moved() -> None:
    base, new = budget(dispatcher=100, kernel=100), budget(dispatcher=100, kernel=400)
    tree = Operator("call", 500, 0, {}, (Operator("aten::add", 500, 500, {"dispatcher": 100, "kernel": 400}),))
    new = replace(new, breakdown=replace(new.breakdown, operators=tree))
    kernel = compare_budgets(base, new).host[HOST_CATEGORIES.index("kernel")]
    assert [(move.kind, move.name, move.delta_ns) for move in kernel.contributors] == [
        ("kernel", "kernel_frame", 300),
        ("operator", "aten::add", 400),
    ]
    # What is known to have moved comes before what may have moved more.
    assert [move.verdict for move in kernel.contributors] == ["slower", "inconclusive"]


def test_a_kernel_that_left_the_list_of_the_costliest_is_not_gone() -> None:
    def moved(base: dict[str, int], new: dict[str, int], waits_ns: tuple[int, int]) -> list[tuple[str, int]]:
        sides = []
        for kernels, wait_ns in zip((base, new), waits_ns, strict=True):
            host = budget(python=10_000 - wait_ns, wait=wait_ns)
            made = with_device(host, 5_000, wait_ns).breakdown
            assert made.device is not None
            top = tuple(DeviceKernel(name, "compute", 1.0, ns) for name, ns in kernels.items())
            sides.append(replace(host, breakdown=replace(made, device=replace(made.device, top=top))))
        wait = compare_budgets(*sides).host[HOST_CATEGORIES.index("wait")]
        return [(move.name, move.delta_ns) for move in wait.contributors if move.kind == "kernel"]

    seven = {f"k{at}": 1_000 - 100 * at for at in range(1, 8)}
    assert len(seven) == LISTED_KERNELS - 1
    # The eighth and the ninth take 200 and 199 ns, then 199 and 201: k9 took at most 200 before.
    longer, shorter = (5_000, 8_000), (8_000, 5_000)
    assert moved({**seven, "k8": 200}, {**seven, "k9": 201}, longer) == [("k9", 1)]
    assert moved({**seven, "k9": 201}, {**seven, "k8": 200}, shorter) == [("k9", -1)]
    assert moved({**seven, "k8": 200}, {"new": 2_000, **seven}, longer) == [("new", 1_800)]
    # A list that is not full holds all kernels.
    assert moved({"k1": 900, "k8": 200}, {"k1": 900}, shorter) == [("k8", -200)]
    # The host waits for no more of a kernel than it waits longer, and for none where it waits no longer.
    assert moved({"k1": 900}, {"k1": 21_900}, (500, 2_800)) == [("k1", 2_300)]
    assert moved({"k1": 900}, {"k1": 21_900}, (5_000, 5_000)) == moved({"k1": 900}, {"k1": 21_900}, shorter) == []


@given(sizes=SIZES, wall_ns=st.integers(0, 10**6))
def test_a_stretched_budget_still_closes(sizes: dict[str, int], wall_ns: int) -> None:
    made = rescaled(breakdown({"python": {"user": sizes["python"]}}, **sizes), wall_ns)
    assert sum(each.ns for each in made.host) == made.wall.ns == wall_ns


def test_idle_time_that_a_busy_device_gets_is_unattributed_beside_every_other_cause() -> None:
    busy = with_device(budget(kernel=1_000), 1_000).breakdown
    device = rescaled(busy, 1_200).device
    assert device is not None
    assert (device.busy_ns, device.idle_ns, device.idle_blame) == (1_000, 200, {"launch": 0, "unattributed": 200})


def test_what_makes_captures_incomparable() -> None:
    def made(size: int, torch: str, kind: Kind = "scenario") -> CaptureMeta:
        subject = Subject(kind, "add1", "add1", {"size": size})
        return CaptureMeta(subject=subject, environment={"torch": torch, "host": "a"})

    base = made(10, "2.13.0")
    assert differences(base, base) == []
    assert differences(base, made(10, "2.13.0", "function")) == [
        "scenario: 'add1' against None",
        "function: None against 'add1'",
    ]
    f, g = (CaptureMeta(subject=Subject("callable", name, name, {})) for name in "fg")
    assert differences(f, g) == []
    assert differences(base, made(20, "2.14.0")) == [
        "params: {'size': 10} against {'size': 20}",
        "torch: '2.13.0' against '2.14.0'",
    ]


def test_times_of_different_cards_are_not_compared() -> None:
    def made(gpu: str | None, device: str) -> CaptureMeta:
        return CaptureMeta(subject=Subject("function", "f", "f", device=device), environment={"gpu": gpu})

    assert differences(made("NVIDIA H100 80GB HBM3", "cuda"), made("NVIDIA H200", "cuda")) == [
        "gpu: 'NVIDIA H100 80GB HBM3' against 'NVIDIA H200'"
    ]
    # A call on the processor may see a card or none.
    assert differences(made("NVIDIA H200", "cpu"), made(None, "cpu")) == []
