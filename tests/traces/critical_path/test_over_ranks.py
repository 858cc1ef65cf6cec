"""Critical paths over the ranks of drawn jobs: each part to the nanosecond, and what holds of every job."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.readers.kineto.model import frame_of
from overhead_lens.report.forms import to_html, to_json, to_text
from overhead_lens.traces import loops
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.collectives.matching import matched
from overhead_lens.traces.critical_path.model import PathOverRanks, StepOverRanks
from overhead_lens.traces.critical_path.over_ranks import RankPaths, path_over_ranks
from overhead_lens.traces.job.ranks import Job, compare_ranks
from overhead_lens.traces.model import TraceAnalysis
from tests.documents import validated
from tests.drawn.collectives import collective
from tests.drawn.jobs import Joined, job_of, rank_entries
from tests.drawn.timelines import CLASSIFIER, WORKER, analyzer_of, timed
from tests.excerpts import assert_shows, excerpt
from tests.traces.critical_path.test_properties import TRACES

EMPTY = analyzer_of().analysis()


def path_of(analyses: Sequence[TraceAnalysis]) -> PathOverRanks:
    path = compare_ranks(analyses).critical_path
    assert path is not None
    return path


def chained(*ranks: Analyzer) -> list[TraceAnalysis]:
    """The ranks of a job with nothing but what their path is made of."""
    return [
        replace(EMPTY, path=f"rank{number}.json", rank=number, collectives=one.collectives, chains=one.chains)
        for number, one in enumerate(ranks)
    ]


def over(*ranks: list[dict]) -> PathOverRanks:
    return path_of(chained(*(analyzer_of(*entries) for entries in ranks)))


def only(*ranks: list[dict]) -> StepOverRanks:
    (step,) = over(*ranks).steps
    return step


def on_ranks(step: StepOverRanks) -> dict[str, int]:
    return {rank.rank: rank.ns for rank in step.ranks}


def times(many: Sequence) -> dict[str, int]:
    return {one.name: one.ns for one in many}


def test_where_one_rank_waited_the_path_goes_on_in_the_one_that_came_last() -> None:
    waiting = [
        timed(0, 100, "train.py(1): main", "python_function"),
        timed(0, 100, "ProfilerStep#1", "user_annotation"),
        timed(10, 2, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        collective(12, 48, Seq=3, correlation=1),
        timed(20, 42, "cudaDeviceSynchronize", "cuda_runtime", correlation=2),
    ]
    # By its own clock 20 later: both leave the collective together, at 60 and 80.
    last = [
        timed(0, 115, "train.py(1): main", "python_function"),
        timed(20, 95, "ProfilerStep#1", "user_annotation"),
        timed(20, 48, "aten::mm"),
        timed(70, 2, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        collective(73, 7, Seq=3, correlation=1),
        timed(75, 6, "cudaDeviceSynchronize", "cuda_runtime", correlation=2),
    ]
    step = only(waiting, last)
    assert (step.step, step.last, step.start_ns, step.wall_ns, step.changes) == (1, "0", 0, 100, 1)
    assert {rank.rank: (rank.ns, times(rank.kinds)) for rank in step.ranks} == {
        "0": (40, {"wait": 2, "python": 38}),
        "1": (60, {"python": 2, "dispatcher": 48, "launch": 2, "communication": 7, "launch_latency": 1}),
    }
    assert times(step.kinds) == {
        "python": 40, "dispatcher": 48, "launch": 2, "wait": 2, "communication": 7, "launch_latency": 1,
    }  # fmt: skip
    assert times(step.operators) == {"aten::mm": 48}
    assert times(step.kernels) == {"ncclDevKernel_Generic": 7}


def test_a_delay_that_is_passed_on_from_group_to_group_is_followed() -> None:
    path = over(
        rank_entries(120, [Joined(100, 105, "AB")]),
        rank_entries(130, [Joined(10, 105, "AB"), Joined(115, 120, "BC")]),
        rank_entries(150, [Joined(15, 120, "BC")]),
    )
    (step,) = path.steps
    assert (step.step, step.last, step.wall_ns, step.changes) == (None, "2", 150, 2)
    # After BC; from AB to BC with the kernel of BC; all before AB with its kernel.
    assert on_ranks(step) == {"0": 100 + 5, "2": 30, "1": 10 + 5}
    assert times(step.kinds) == {"python": 29 + 8 + 99, "launch": 2, "wait": 2, "communication": 10}
    assert path.notes == (
        "a collective is taken to end on all its ranks at one instant, which is how clocks of ranks are aligned",
    )


def test_a_rank_that_came_last_is_followed_into_its_step_before() -> None:
    step = over(
        rank_entries(100, [Joined(60, 80, sequence=1)], [(1, 0, 20), (2, 20, 100)]),
        # It ends its first step when the other is in the middle of the second.
        rank_entries(95, [Joined(70, 80, sequence=1)], [(1, 0, 50), (2, 50, 95)]),
    ).steps[1]
    assert (step.step, step.last, step.start_ns, step.wall_ns) == (2, "0", 20, 80)
    assert on_ranks(step) == {"1": 60, "0": 20}
    assert times(step.kinds) == {"python": 19 + 49, "wait": 1, "launch": 1, "communication": 10}


def test_a_collective_that_runs_when_the_step_ends() -> None:
    def rank(start: int, step_end: int) -> list[dict]:
        return [
            timed(0, start, "train.py(1): main", "python_function"),
            timed(0, step_end, "ProfilerStep#1", "user_annotation", WORKER),
            timed(start - 1, 1, "cudaLaunchKernel", "cuda_runtime", correlation=1),
            collective(start, 80 - start, Seq=1, correlation=1),
        ]

    # At 50 the first waits for the second, which works until 70.
    step = only(rank(20, 50), rank(70, 45))
    assert (step.last, step.wall_ns, step.changes) == ("0", 50, 0)
    assert (on_ranks(step), times(step.kinds)) == ({"1": 50}, {"python": 50})
    # At 75 both are in it.
    step = only(rank(20, 75), rank(70, 45))
    assert (on_ranks(step), times(step.kinds)) == (
        {"1": 75},
        {"python": 69, "launch": 1, "communication": 5},
    )


def test_a_step_that_ends_where_a_call_goes_on_is_left_as_that_step_knows() -> None:
    def steps(*ends: int) -> list[dict]:
        return [
            timed(start, end - start, f"ProfilerStep#{number}", "user_annotation", WORKER)
            for number, (start, end) in enumerate(itertools.pairwise(ends))
        ]

    path = over(
        [*rank_entries(100, [Joined(20, 30), Joined(60, 80, sequence=1)]), *steps(0, 10, 100)],
        # From its second step on nothing tells that the device was waited for until 30.
        [*rank_entries(95, [Joined(25, 30), Joined(70, 80, sequence=1)]), *steps(0, 30, 95)],
    )
    step = path.steps[1]
    assert (step.last, on_ranks(step)) == ("0", {"1": 70, "0": 20})
    assert times(step.kinds) == {"python": 19 + 38 + 14, "wait": 2, "launch": 2, "communication": 10 + 5}


def test_chains_that_meet_in_the_middle_of_a_call() -> None:
    # The kernel begins in the middle of its call, which the host's own chain passes as well.
    last = [
        timed(0, 50, "train.py(1): main", "python_function"),
        timed(10, 10, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        collective(15, 15, group="all", Seq=0, correlation=1),
    ]
    step = only(rank_entries(60, [Joined(5, 30)]), last)
    assert (on_ranks(step), times(step.kinds)) == (
        {"0": 30, "1": 30},
        {"python": 29 + 10, "launch": 5, "wait": 1, "communication": 15},
    )


def test_what_nothing_explains_between_a_launch_and_a_queue() -> None:
    # Eleven kernels with gaps of 1 tell what is usual; then one waits for another that nobody launched, and longer than usual.
    kernels = [
        event
        for at in range(11)
        for event in (
            timed(at, 1, "cudaLaunchKernel", "cuda_runtime", correlation=100 + at),
            timed(1 + 3 * at, 2, "gemm", "kernel", (0, 11), device=0, stream=11, correlation=100 + at),
        )
    ]
    last = [
        timed(0, 80, "train.py(1): main", "python_function"),
        *kernels,
        timed(35, 1, "cudaLaunchKernel", "cuda_runtime", correlation=1),
        timed(40, 4, "gemm", "kernel", (0, 9), device=0, stream=9, correlation=99),
        collective(50, 10, group="all", Seq=0, correlation=1),
    ]
    step = only(rank_entries(90, [Joined(5, 60)]), last)
    assert (on_ranks(step), times(step.kinds)) == (
        {"1": 60, "0": 30},
        {"python": 29 + 24, "launch": 11 + 1, "wait": 1, "communication": 10, "queue": 5, "unexplained": 9},
    )


def test_of_ranks_that_come_at_one_time_none_is_preferred() -> None:
    path = over(rank_entries(60, [Joined(20, 40)]), rank_entries(70, [Joined(20, 40)]))
    assert (on_ranks(path.steps[0]), path.steps[0].changes) == ({"1": 70}, 0)
    assert path.notes == ()


def test_orders_that_contradict_each_other_end_the_path_s_changes() -> None:
    path = over(
        rank_entries(70, [Joined(10, 30, "a"), Joined(40, 45, "b")]),
        rank_entries(50, [Joined(10, 30, "b"), Joined(40, 45, "a")]),
    )
    (step,) = path.steps
    assert (step.last, step.changes, on_ranks(step)) == ("0", 1, {"0": 25 + 5 + 10, "1": 5 + 10 + 15})
    assert "at 1 collectives the orders of ranks contradict each other: there the path stays in its rank" in path.notes


def test_ranks_without_a_common_collective_are_not_compared_by_their_clocks() -> None:
    path = over(
        rank_entries(60, [Joined(20, 40, "a")], [(1, 0, 60)]),
        rank_entries(80, [Joined(20, 40, "b")], [(1, 10, 50)]),
        rank_entries(90, [], [(1, 80, 90)]),
    )
    (step,) = path.steps
    assert (step.last, step.wall_ns, on_ranks(step), step.changes) == ("0", 60, {"0": 60}, 0)
    assert path.notes == (
        "no collective is in two traces: the longest step of all ranks counts, and its path stays in that rank",
        "1 collectives on the paths are in no other trace: who was waited for in them is not known",
    )


def test_ranks_that_share_no_collective_with_the_others_end_no_step() -> None:
    path = over(
        rank_entries(60, [Joined(20, 40)]), rank_entries(50, [Joined(30, 40)]), rank_entries(500, [Joined(20, 40, "c")])
    )
    (step,) = path.steps
    assert (step.last, on_ranks(step)) == ("0", {"1": 40, "0": 20})
    assert "2 of 3 ranks are joined by collectives: the others cannot be on the paths" in path.notes


def test_a_rank_without_events_has_no_part() -> None:
    path = over(rank_entries(60, [Joined(20, 40)]), [], rank_entries(70, [Joined(30, 40)]))
    assert on_ranks(path.steps[0]) == {"2": 70}
    assert "rank 1: the trace holds no work and has no critical path" in path.notes
    assert over([], []) == PathOverRanks((), ("rank 0, 1: the trace holds no work and has no critical path",))


def test_steps_that_not_all_ranks_have_are_left_out() -> None:
    path = over(
        rank_entries(100, [Joined(20, 40)], [(1, 0, 50), (2, 50, 100)]),
        rank_entries(60, [Joined(30, 40)], [(1, 0, 55)]),
    )
    assert [(step.step, step.last, on_ranks(step)) for step in path.steps] == [(1, "1", {"1": 55})]
    assert "1 steps are not in the traces of all ranks: they have no path over ranks" in path.notes
    mixed = over(rank_entries(100, [], [(1, 0, 50)]), rank_entries(60, []))
    assert mixed.steps == ()
    assert "2 steps are not in the traces of all ranks: they have no path over ranks" in mixed.notes


def test_it_is_only_made_when_it_is_asked_for() -> None:
    assert compare_ranks([analyzer_of(*rank_entries(60, [])).analysis() for _ in range(2)]).critical_path is None


@settings(max_examples=60)
@given(entries=TRACES)
def test_of_one_rank_it_is_that_rank_s_own(entries: list[dict]) -> None:
    analyzer = analyzer_of(*entries)
    windows, tables = analyzer.paths.analysis().windows, analyzer.paths.tables()
    collectives = analyzer.collectives
    found = path_over_ranks([RankPaths("0", analyzer.chains, collectives)], matched([collectives]))
    for step, window, table in zip(found.steps, windows, tables, strict=True):
        assert (step.step, step.start_ns, step.wall_ns, step.changes) == (
            window.step,
            window.start_ns,
            window.wall_ns,
            0,
        )
        assert times(step.kinds) == {share.name: share.ns for share in window.kinds if share.ns}
        mine = frame_of(table)
        for column, told in (("operator", step.operators), ("module", step.modules)):
            sums = mine[mine[column] != ""].groupby(column)["dur_ns"].sum().to_dict()
            assert times(told) == sums
        device = mine[mine["kind"].isin(["compute", "communication", "copy"])]
        assert times(step.kernels) == device.groupby("name")["dur_ns"].sum().to_dict()


@dataclass
class Played:
    """A job on one clock.

    Attributes:
        joined: Per rank its collectives.
        ends: Per rank the ends of its steps; the first begins at 0.
        shifts: Per rank how long it was recorded before.
    """

    joined: list[list[Joined]]
    ends: list[list[int]]
    shifts: list[int] = field(default_factory=list)

    def entries(self, rank: int) -> list[dict]:
        shift = self.shifts[rank]
        joined = [replace(one, start=one.start + shift, end=one.end + shift) for one in self.joined[rank]]
        bounds = [shift + end for end in (0, *self.ends[rank])]
        steps = [(number, *pair) for number, pair in enumerate(itertools.pairwise(bounds))]
        return rank_entries(bounds[-1], joined, steps)

    def shortest(self, one: Joined) -> int:
        return min(each.end - each.start for mine in self.joined for each in mine if each.sequence == one.sequence)


@st.composite
def played_jobs(draw: st.DrawFn) -> Played:
    """Ranks that work for some time between collectives of all or some of them."""
    size, steps = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    now = [0] * size
    job = Played([[] for _ in now], [[] for _ in now], draw(st.lists(st.integers(0, 30), min_size=size, max_size=size)))
    sequence = 0
    for step in range(steps):
        for turn in range(draw(st.integers(1, 3))):
            sequence += 1
            members = list(range(size))
            if step or turn:
                members = sorted(draw(st.sets(st.sampled_from(members), min_size=1)))
            starts = {rank: now[rank] + draw(st.integers(1, 40)) + 1 for rank in members}
            end = max(starts.values()) + draw(st.integers(1, 9))
            for rank, start in starts.items():
                now[rank] = start - 1
                if len(members) > 1:
                    job.joined[rank].append(Joined(start, end, "".join(map(str, members)), sequence))
                    now[rank] = end + 1
        for rank in range(size):
            now[rank] += draw(st.integers(1, 40))
            job.ends[rank].append(now[rank])
    return job


def visits(job: Played, step: int) -> tuple[int, int, list[tuple[int, int]]]:
    """The rank that ends the step last, its length, and who is on the path for how long, from its end back."""
    last = max(range(len(job.ends)), key=lambda rank: job.ends[rank][step])
    start = job.ends[last][step - 1] if step else 0
    at = job.ends[last][step]
    rank, found = last, []
    while at > start:
        before = [one for one in job.joined[rank] if one.end <= at]
        since = max(start, before[-1].end if before else start)
        found.append((rank, at - since))
        at = since
        if at > start:
            one = before[-1]
            shortest = job.shortest(one)
            if one.end - one.start > shortest:
                rank = next(
                    number for number, mine in enumerate(job.joined) for each in mine
                    if each.sequence == one.sequence and each.end - each.start == shortest
                )  # fmt: skip
            found.append((rank, min(shortest, at - start)))
            at -= shortest
    return last, job.ends[last][step] - start, found


@settings(max_examples=60)
@given(job=played_jobs(), order=st.randoms(use_true_random=False))
def test_a_played_job_is_followed_as_it_was_played(job: Played, order: Any) -> None:
    analyses = chained(*(analyzer_of(*job.entries(rank)) for rank in range(len(job.ends))))
    path = path_of(analyses)
    order.shuffle(analyses)
    assert path_of(analyses) == path
    assert len(path.steps) == len(job.ends[0])
    for number, step in enumerate(path.steps):
        last, wall_ns, found = visits(job, number)
        assert (step.step, step.last, step.wall_ns) == (number, str(last), wall_ns)
        sums: Counter[str] = Counter()
        for rank, ns in found:
            sums[str(rank)] += ns
        assert on_ranks(step) == +sums
        ranks = [rank for rank, ns in found if ns]
        assert step.changes == sum(one != other for one, other in itertools.pairwise(ranks))
    # A rank that never comes last has only what lies behind its last collective.
    for rank, mine in enumerate(job.joined):
        if any(one.end - one.start == job.shortest(one) for one in mine):
            continue
        for number, step in enumerate(path.steps):
            end = job.ends[rank][number]
            start = job.ends[rank][number - 1] if number else 0
            behind = end - max([start, *(one.end for one in mine if one.end <= end)])
            assert on_ranks(step).get(str(rank), 0) == (behind if step.last == str(rank) else 0)


@settings(max_examples=50)
@given(ranks=st.lists(TRACES, min_size=2, max_size=3))
def test_whatever_the_traces_hold_the_parts_sum_to_the_last_rank_s_step(ranks: list[list[dict]]) -> None:
    analyzers = [analyzer_of(*entries) for entries in ranks]
    windows = {
        (str(rank), each.start_ns): each.wall_ns
        for rank, analyzer in enumerate(analyzers)
        for each in analyzer.paths.analysis().windows
    }
    for step in path_of(chained(*analyzers)).steps:  # the constructors check the sums
        assert windows[step.last, step.start_ns] == step.wall_ns


def test_what_is_sent_back_is_small_and_says_the_same() -> None:
    calls = [timed(at, 1, f"lib.py({at}): f{at}", "python_function") for at in range(0, 1990, 2)]
    ranks = [[*rank_entries(2100, [Joined(start, 2040)]), *calls] for start in (2000, 2030)]
    analyses = job_of(*ranks)
    assert path_of(pickle.loads(pickle.dumps(analyses))) == path_of(analyses)
    # 995 calls are one stretch of Python.
    assert len(analyses[0].chains.time_ns) < 10
    assert on_ranks(path_of(analyses).steps[0]) == {"1": 2040, "0": 60}


def test_compiled_and_plain_loops_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = [Joined(100 * at + 50 + 20 * (at % 2), 100 * at + 90, sequence=at) for at in range(30)]
    other = [Joined(100 * at + 70 - 20 * (at % 2), 100 * at + 90, sequence=at) for at in range(30)]
    found = []
    for compiled_from in (0, 1 << 40):
        for name in ("LOADED_FROM", "COMPILED_FROM"):
            monkeypatch.setattr(loops, name, compiled_from)
        found.append(over(rank_entries(3000, joined), rank_entries(3050, other)))
    assert found[0] == found[1]
    # In turns: the kernel and what led to it from the collective before on, and at last what lies behind the last one.
    (step,) = found[0].steps
    assert (step.changes, on_ranks(step)) == (30, {"0": 15 * 100, "1": 90 + 14 * 100 + 60})


def test_reports_say_who_is_on_the_path() -> None:
    analyses = job_of(
        rank_entries(100_000, [Joined(60_000, 80_000)], [(1, 0, 100_000)]),
        rank_entries(95_000, [Joined(70_000, 80_000)], [(1, 0, 95_000)]),
    )
    job = Job.of(analyses)
    text = to_text(job)
    assert_shows(text, excerpt("docs/guide/critical-path.md", "ranks"))
    assert "critical path over ranks: a collective is taken to end on all its ranks at one instant" in text
    (step,) = validated(to_json(job))["ranks"]["critical_path"]["steps"]
    assert (step["last"], step["wall_ns"], step["changes"]) == ("0", 100_000, 1)
    assert [(rank["rank"], rank["ns"]) for rank in step["ranks"]] == [("1", 80_000), ("0", 20_000)]
    assert "Critical path over ranks, of 1 step" in to_html(job, CLASSIFIER)


def test_hostile_names_stay_text() -> None:
    name = "<script>[bold]\x1b[31m"
    entries = [*rank_entries(100, [Joined(60, 80)]), timed(0, 50, name)]
    job = Job.of(
        [replace(one, rank=None, path=f"{name}{at}") for at, one in enumerate(job_of(entries, [*entries], []))]
    )
    assert name not in to_html(job, CLASSIFIER)
    assert "\x1b" not in to_text(job, whole=True)
    assert validated(to_json(job))["ranks"]["critical_path"]["steps"][0]["operators"][0]["name"] == name
