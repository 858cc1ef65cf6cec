"""Ranks compared: who waits for whom."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overhead_lens.report.outlines.ranks import ranks_sentence
from overhead_lens.traces.job.ranks import RanksAnalysis, compare_ranks
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.units import format_ns
from tests.drawn.collectives import collective
from tests.drawn.timelines import analyzer_of, timed


def rank(
    number: int | None, compute_ns: int, collective_ns: list[int], python_ns: int = 0, size: int = 3
) -> TraceAnalysis:
    """A rank that computes and then joins collectives."""
    entries = [timed(0, python_ns, "my.py(1): f", "python_function")] if python_ns else []
    entries.append(timed(0, compute_ns, "gemm", "kernel", (0, 7), device=0, stream=7))
    start = compute_ns
    for dur_ns in collective_ns:
        entries.append(timed(start, dur_ns, "ncclDevKernel", "kernel", (0, 8), device=0, stream=8))
        start += dur_ns
    metadata = {} if number is None else {"distributedInfo": {"rank": number, "world_size": size}}
    return analyzer_of(*entries, **metadata).analysis()


def told(ranks: RanksAnalysis) -> list[tuple[str, int, int, int]]:
    return [(each.label, each.collectives, each.wait_ns, each.transfer_ns) for each in ranks.ranks]


def test_the_last_to_join_is_the_slowest() -> None:
    found = compare_ranks([rank(0, 100, [50, 30]), rank(1, 140, [10, 30]), rank(2, 110, [40, 35])])
    assert told(found) == [("0", 2, 40, 40), ("1", 2, 0, 40), ("2", 2, 35, 40)]
    assert (found.slowest, found.by_collectives) == ("1", True)
    assert found.notes == ("the traces do not name process groups: collectives are matched by name and order alone",)
    # 140 against the lower median of 100 and 110.
    assert [(each.name, each.excess_ns) for each in found.straggler] == [("device.compute", 40)]
    compute = next(each for each in found.spreads if each.name == "device.compute")
    assert (compute.min_ns, compute.median_ns, compute.max_ns, compute.max_rank) == (100, 110, 140, "1")


def test_the_slowest_is_the_one_that_others_wait_for() -> None:
    # Rank 0 comes last in the first, rank 2 in the second; rank 1 waits least and holds nobody up.
    found = compare_ranks([rank(0, 100, [5, 35]), rank(1, 100, [15, 10]), rank(2, 100, [45, 5])])
    assert [each.wait_ns for each in found.ranks] == [30, 15, 40]
    assert found.stragglers is not None
    assert [(each.rank, each.lost_ns) for each in found.stragglers.holders] == [("0", 50), ("2", 35)]
    assert found.slowest == "0"
    assert ranks_sentence(found).startswith(
        "Rank 0 is the slowest of 3 ranks: the others wait for it in collectives, which could end 10 ns (7.1% of its window) sooner"
    )


def test_a_rank_that_was_kept_waiting_itself_is_not_the_slowest() -> None:
    """Ranks 0, 2 and 3 begin together; rank 0 comes late to rank 1, and that therefore to ranks 2 and 3."""
    joined = {
        0: [("all", 0, 5), ("first", 100, 5)],
        1: [("first", 5, 100), ("second", 110, 5)],
        2: [("all", 0, 5), ("second", 10, 105)],
        3: [("all", 0, 5), ("second", 10, 105)],
    }
    found = compare_ranks(
        [
            analyzer_of(
                *(collective(start, dur, group=group, Seq=1) for group, start, dur in times),
                distributedInfo={"rank": number, "world_size": 4},
            ).analysis()
            for number, times in joined.items()
        ]
    )
    assert found.stragglers is not None
    assert {each.rank: (each.own_ns, each.passed_on_ns) for each in found.stragglers.holders if each.lost_ns} == {
        "0": (95, 0),
        "1": (2 * 5, 2 * 95),
    }
    assert found.slowest == "0"


def test_the_host_explains_a_straggler() -> None:
    found = compare_ranks(
        [rank(0, 10, [90], python_ns=20), rank(1, 10, [5], python_ns=95), rank(2, 10, [90], python_ns=20)]
    )
    assert found.slowest == "1"
    assert [(each.name, each.excess_ns) for each in found.straggler] == [("host.python", 75)]


def test_a_rank_that_was_cut_off_is_not_the_slowest() -> None:
    found = compare_ranks([rank(0, 100, [50, 50, 30]), rank(1, 140, [10, 10, 30]), rank(2, 100, [10])])
    assert [each.wait_ns for each in found.ranks] == [80, 0, 0]
    assert found.slowest == "1"
    assert any("different numbers of collectives" in note for note in found.notes)


def test_a_rank_whose_recording_begins_late_is_told() -> None:
    """Until the first collective ends, 150 ns of the one and 70 of the other were recorded; the second waits 20."""
    told_by = "the recordings begin up to 80 ns apart, and 40 ns of the waiting, in the first collective that all share"
    for later_ns, there in ((20, True), (400, False)):
        found = compare_ranks([rank(0, 100, [50, 30]), rank(1, 60, [10, 30 + later_ns])])
        assert any(note.startswith(told_by) for note in found.notes) == there


@pytest.mark.parametrize(
    ("collective_ns", "why"),
    [
        ([5, 5, 5], "holds the others up in collectives"),
        ([5, 4, 4], "holds the others up in collectives"),
        ([], "has the longest window"),
    ],
)
def test_no_rank_is_named_where_several_come_last(collective_ns: list[int], why: str) -> None:
    ranks = [rank(number, 9, collective_ns[number : number + 1]) for number in range(3)]
    assert ranks_sentence(compare_ranks(ranks)) == f"None of the 3 ranks alone {why}."


def test_without_a_common_collective_the_longest_window_decides() -> None:
    found = compare_ranks([rank(0, 100, []), rank(1, 300, []), rank(2, 200, [])])
    assert (found.slowest, found.by_collectives) == ("1", False)
    assert any("no collective is in two traces" in note for note in found.notes)
    assert ranks_sentence(found).startswith(
        "Rank 1 is the slowest of 3 ranks: it has the longest window, 200 ns (66.7% of its window) beyond the median of the others"
    )


def test_what_does_not_fit_is_said() -> None:
    notes = " | ".join(compare_ranks([rank(0, 1, [], size=8), rank(0, 2, [], size=8), rank(None, 3, [])]).notes)
    assert "rank 0 is claimed by several traces" in notes
    assert "1 traces do not say which rank they are" in notes
    assert "1 of 8 ranks are here" in notes
    assert "jobs of different sizes (4, 8 ranks)" in " ".join(
        compare_ranks([rank(0, 1, [], size=8), rank(1, 1, [], size=4)]).notes
    )


RANKS = st.lists(st.tuples(st.integers(1, 50), st.lists(st.integers(1, 40), max_size=3)), min_size=2, max_size=4)


@settings(max_examples=50)
@given(given_ranks=RANKS)
def test_waits_are_what_the_fastest_lacks(given_ranks: list[tuple[int, list[int]]]) -> None:
    analyses = [rank(number, *each, size=len(given_ranks)) for number, each in enumerate(given_ranks)]
    found = compare_ranks(analyses)
    for (_, collectives), time in zip(given_ranks, found.ranks, strict=True):
        shared = [
            (own, [other[1][at] for other in given_ranks if len(other[1]) > at]) for at, own in enumerate(collectives)
        ]
        matched = [(own, min(all_)) for own, all_ in shared if len(all_) > 1]
        assert time.collectives == len(matched)
        assert (time.wait_ns, time.transfer_ns) == (
            sum(own - least for own, least in matched),
            sum(least for _, least in matched),
        )
    for order in itertools.islice(itertools.permutations(analyses), 6):
        assert compare_ranks(order) == found


@settings(max_examples=50)
@given(
    others=st.lists(st.integers(10, 400), min_size=1, max_size=5),
    late_ns=st.integers(1, 500),
    place=st.integers(0, 5),
    by_host=st.booleans(),
)
def test_a_straggler_is_the_finding_of_a_job(others: list[int], late_ns: int, place: int, by_host: bool) -> None:
    straggler = min(place, len(others))
    joins = [*others[:straggler], max(others) + late_ns, *others[straggler:]]
    end = max(joins) + 20
    size = len(joins)
    ranks = [
        late_by_host(number, at, end, size) if by_host else rank(number, at, [end - at], size=size)
        for number, at in enumerate(joins)
    ]
    first, *more = compare_ranks(ranks).findings
    excess_ns = max(joins) - sorted(others)[(len(others) - 1) // 2]
    name = "host.python" if by_host else "device.compute"
    assert (first.id, first.bound_ns, more) == ("straggler", late_ns, [])
    assert [(each.name, each.ns) for each in first.evidence] == [(name, excess_ns)]
    assert first.sentence == (
        f"the others wait {format_ns(late_ns)} ({late_ns / end:.0%}) for rank {straggler}, "
        f"which spends {format_ns(excess_ns)} more in {name} than their median"
    )


def late_by_host(number: int, at: int, end: int, size: int) -> TraceAnalysis:
    """A rank whose Python delays the collective."""
    entries = [
        timed(0, at, "my.py(1): f", "python_function"),
        timed(at, end - at, "ncclDevKernel", "kernel", (0, 8), device=0, stream=8),
    ]
    return analyzer_of(*entries, distributedInfo={"rank": number, "world_size": size}).analysis()


def test_ranks_that_join_together_hold_nobody_up() -> None:
    assert compare_ranks([rank(0, 9, [5]), rank(1, 9, [5])]).findings == ()


def test_what_is_waited_in_two_groups_at_once_is_waited_once() -> None:
    """Experts and parameters have a communicator each; rank 1 joins both at 95."""

    def joined(number: int, *joins: int) -> TraceAnalysis:
        entries = [
            collective(start, 100 - start, group=group, Seq=1, stream=stream)
            for start, group, stream in zip(joins, ("dp", "ep"), (9, 10), strict=True)
        ]
        information = {"distributedInfo": {"rank": number, "world_size": 2}}
        return analyzer_of(timed(0, 5, "op"), *entries, **information).analysis()

    found = compare_ranks([joined(0, 10, 20), joined(1, 95, 95)])
    assert told(found) == [("0", 2, 85, 5), ("1", 2, 0, 5)]
    assert found.stragglers is not None
    (holder,) = found.stragglers.holders
    assert (holder.rank, holder.last, holder.lost_ns, holder.lead_ns) == ("1", 2, 85, 85)
    (finding,) = found.findings
    assert finding.sentence == "the others wait 85 ns (85%) for rank 1"


def test_receives_of_two_pairs_of_ranks_are_not_one_collective() -> None:
    """Each rank numbers its own; all stages of a pipeline have a first one."""
    stages = [analyzer_of(collective(0, dur, "recv", group="pp", Seq=1)).analysis() for dur in (10, 50)]
    found = compare_ranks(stages)
    assert (found.by_collectives, found.stragglers) == (False, None)
    assert [each.collectives for each in found.ranks] == [0, 0]


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_SendRecv(Args)",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",
        "EpDispatchInterNodeKernel_bf16",
    ],
)
def test_exchanges_between_pairs_of_ranks_are_not_one_collective(name: str) -> None:
    """``batch_isend_irecv`` launches by ncclGroupEnd, whose annotation does not say what was batched."""
    stages = [
        analyzer_of(
            timed(0, 5, "nccl:coalesced", "user_annotation"),
            timed(1, 2, "cudaLaunchKernel", "cuda_runtime", correlation=1),
            timed(10, dur, name, "kernel", (0, 9), device=0, stream=9, correlation=1),
        ).analysis()
        for dur in (10, 20, 50)
    ]
    found = compare_ranks(stages)
    assert (found.by_collectives, found.stragglers, found.findings) == (False, None, ())
    assert [(each.collectives, each.wait_ns) for each in found.ranks] == [(0, 0)] * 3


def test_a_rank_of_fewer_collectives_may_be_the_slowest() -> None:
    """The first and the last stage of a pipeline share a weight, whose gradient they reduce as well."""
    joined = {
        0: [("all", 10, 90), ("ends", 110, 20)],
        1: [("all", 90, 10)],
        2: [("all", 20, 80), ("ends", 120, 10)],
    }
    found = compare_ranks(
        [
            analyzer_of(
                *(collective(start, dur, group=group, Seq=1) for group, start, dur in times),
                distributedInfo={"rank": number, "world_size": 3},
            ).analysis()
            for number, times in joined.items()
        ]
    )
    assert [(each.collectives, each.wait_ns) for each in found.ranks] == [(2, 90), (1, 0), (2, 70)]
    assert found.slowest == "1"


def test_kernels_without_a_group_are_of_the_group_of_their_call() -> None:
    """RCCL names all of them alike; with a lost link they say nothing of themselves."""

    def joined(number: int, group: str, start: int) -> TraceAnalysis:
        recorded = {**timed(0, 5, "record_param_comms"), "args": collective(0, 1, group=group, Seq=1)["args"]}
        launch = timed(1, 2, "cudaLaunchKernel", "cuda_runtime", correlation=1)
        place = {"device": 0, "stream": 9, "correlation": 1}
        work = timed(start, 100 - start, "ncclDevKernel_Generic_1", "kernel", (0, 9), **place)
        return analyzer_of(recorded, launch, work, distributedInfo={"rank": number, "world_size": 4}).analysis()

    found = compare_ranks([joined(*each) for each in ((0, "a", 10), (1, "a", 60), (2, "b", 20), (3, "b", 90))])
    assert told(found) == [("0", 1, 50, 40), ("1", 1, 0, 40), ("2", 1, 70, 10), ("3", 1, 0, 10)]
