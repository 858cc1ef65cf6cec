"""Several ranks: which kernels are of one collective, who holds whom up, and what is passed on."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.documents.analysis import job_document
from overhead_lens.report.forms import to_text
from overhead_lens.traces.collectives.matching import matched
from overhead_lens.traces.collectives.model import Collective
from overhead_lens.traces.collectives.stragglers import Stragglers, stragglers
from overhead_lens.traces.job.ranks import Job, compare_ranks
from tests.drawn.collectives import collective
from tests.drawn.timelines import analyzer_of, timed
from tests.excerpts import excerpt


def one(
    start: int,
    dur: int,
    group: str = "all",
    step: int | None = None,
    size: int | None = 32,
    sequence: int | None = None,
) -> Collective:
    return Collective(
        "allreduce", group, 0, start, dur, "all_reduce", "Float", None, size, 2, step=step, sequence=sequence
    )


def found(*ranks: list[Collective]) -> Stragglers:
    result = stragglers([f"r{number}" for number in range(len(ranks))], matched(ranks))
    assert result is not None
    return result


def pairs(*ranks: list[Collective]) -> list[list[tuple[int, int]]]:
    return [[(number, one.start_ns) for number, one in parts] for parts in matched(ranks).shared]


def test_who_comes_last_holds_the_others_up() -> None:
    result = found([one(0, 50), one(60, 30)], [one(40, 10), one(60, 30)], [one(20, 30), one(85, 5)])
    assert [(h.rank, h.last, h.lost_ns, h.own_ns, h.passed_on_ns, h.lead_ns) for h in result.holders] == [
        ("r1", 1, 60, 60, 0, 20),  # 40 + 20; the last but one came 20 earlier
        ("r2", 1, 50, 50, 0, 25),
    ]


def test_steps_say_whether_it_stays_the_same_rank() -> None:
    def steps(*last: int) -> list[list[Collective]]:
        return [
            [one(100 * step, 10 if rank == late else 30, step=step) for step, late in enumerate(last)]
            for rank in range(2)
        ]

    result = found(*steps(1, 1, 0, 0))
    assert [(step.step, step.holder, step.holder_ns, step.lost_ns, step.again) for step in result.steps] == [
        (0, "r1", 20, 20, None), (1, "r1", 20, 20, True), (2, "r0", 20, 20, False), (3, "r0", 20, 20, True),
    ]  # fmt: skip
    assert (result.repeated, result.pairs) == (2, 3)


def test_a_delay_is_passed_on_from_group_to_group() -> None:
    # r0 and r1 share AB, r1 and r2 share BC. r0 works for 100, r1 waits 90 for it in AB and then 10 more; r2 waits for r1 in BC.
    ab, bc = "AB", "BC"
    result = found(
        [one(100, 5, ab)],
        [one(10, 95, ab), one(115, 5, bc)],
        [one(15, 105, bc)],
    )
    holders = {holder.rank: holder for holder in result.holders}
    assert (holders["r0"].lost_ns, holders["r0"].own_ns) == (90, 90)
    # r2 waits 100 for r1, which had itself waited 90 of them.
    assert (holders["r1"].lost_ns, holders["r1"].own_ns, holders["r1"].passed_on_ns) == (100, 10, 90)


def test_what_was_waited_before_the_last_common_collective_is_not_passed_on() -> None:
    result = found(
        [one(100, 5, "AB")],
        [one(10, 95, "AB"), one(110, 5, "BC"), one(200, 5, "BC")],
        [one(110, 5, "BC"), one(150, 55, "BC")],
    )
    holders = {holder.rank: holder for holder in result.holders}
    assert (holders["r1"].lost_ns, holders["r1"].own_ns, holders["r1"].passed_on_ns) == (50, 50, 0)


def test_kernels_match_by_number_then_by_step_and_size() -> None:
    assert pairs([one(0, 5, sequence=1), one(9, 5, sequence=2)], [one(4, 5, sequence=2)]) == [[(0, 9), (1, 4)]]
    assert pairs([one(0, 5, size=8), one(9, 5, size=32)], [one(4, 5, size=32)]) == [[(0, 9), (1, 4)]]
    assert pairs([one(0, 5, step=1), one(9, 5, step=2)], [one(4, 5, step=2)]) == [[(0, 9), (1, 4)]]


def test_numbers_sizes_and_steps_count_only_where_all_traces_tell_them() -> None:
    assert pairs([one(0, 5, size=8)], [one(4, 5, size=None)]) == [[(0, 0), (1, 4)]]
    assert pairs([one(0, 5, step=3)], [one(4, 5)]) == [[(0, 0), (1, 4)]]
    assert pairs([one(0, 5, sequence=3)], [one(4, 5)]) == [[(0, 0), (1, 4)]]


def test_kernels_that_never_ran_together_are_of_no_one_collective() -> None:
    times = [10_000_000 * at for at in range(6)]
    mine = [one(at, 1000, step=at) for at in times]
    # Another clock, 5 s ahead; the fourth is of another collective, 4 ms later than it could be.
    other = [
        one(at + 5_000_000_000 + (4_000_000 if number == 3 else 0), 1000, step=at) for number, at in enumerate(times)
    ]
    result = matched([mine, other])
    assert ([parts[0][1].start_ns for parts in result.shared], result.refuted) == (times[:3] + times[4:], 2)


def test_orders_that_disagree_are_counted() -> None:
    a, b = one(0, 5, "a"), one(9, 5, "b")
    result = matched([[a, b], [b, a]])
    assert ([parts[0][1].group for parts in result.shared], result.unordered) == (["a", "b"], 1)


def test_transfers_are_the_shortest_durations() -> None:
    (transfer,) = found([one(0, 50), one(60, 30)], [one(40, 10), one(60, 20)]).transfers
    assert (transfer.count, transfer.transfer_ns, transfer.algorithm_gb_s, transfer.bus_gb_s) == (
        2,
        30,
        64 / 30,
        64 / 30,
    )


RANKS = st.lists(st.lists(st.integers(0, 40), min_size=5, max_size=5), min_size=2, max_size=4)
GROUPS = st.lists(st.sampled_from(["all", "left", "right"]), min_size=5, max_size=5)


@given(works=RANKS, groups=GROUPS)
def test_all_that_is_lost_is_waited_and_a_played_job_waits_as_long(works: list[list[int]], groups: list[str]) -> None:
    """Ranks that work for the given times between collectives of 3 ns, played with one clock."""
    now = [0] * len(works)
    ranks: list[list[Collective]] = [[] for _ in works]
    waited = 0
    for turn, group in enumerate(groups):
        members = [rank for rank in range(len(works)) if group == "all" or (rank % 2 == 0) == (group == "left")]
        for rank in range(len(works)):
            now[rank] += works[rank][turn]
        if len(members) < 2:
            continue
        end = max(now[rank] for rank in members) + 3
        for rank in members:
            ranks[rank].append(one(now[rank], end - now[rank], group, sequence=turn))
            waited += end - 3 - now[rank]
            now[rank] = end
    result = stragglers([str(rank) for rank in range(len(works))], matched(ranks))
    lost = sum(holder.lost_ns for holder in result.holders) if result else 0
    assert lost == waited
    if result and len(set(groups)) == 1:
        assert all(holder.passed_on_ns == 0 for holder in result.holders)


def job(last_ranks: list[int]) -> Job:
    analyses = []
    for rank in range(2):
        entries = [timed(0, 10, "op")]
        for step, late in enumerate(last_ranks):
            start = 1000 * step + (100 if rank == late else 0)
            entries.append(timed(1000 * step, 900, f"ProfilerStep#{step}", "user_annotation"))
            entries.append(timed(1000 * step + 1, 1, "cudaLaunchKernel", "cuda_runtime", correlation=step + 1))
            entries.append(collective(start, 1000 * step + 300 - start, correlation=step + 1, Seq=step))
        information = {"distributedInfo": {"rank": rank, "world_size": 2}}
        analyses.append(replace(analyzer_of(*entries, **information).analysis(), path=f"rank{rank}"))
    return Job.of(analyses)


def test_the_report_of_ranks_says_who_and_whether_it_stays() -> None:
    done = job([1, 1, 1])
    shown = " ".join(excerpt("docs/guide/collectives.md", "stragglers"))
    assert shown in " ".join(to_text(done).split())
    document = job_document(done)
    assert document.ranks is not None and document.ranks.stragglers is not None
    assert [step.holder for step in document.ranks.stragglers.steps] == ["1", "1", "1"]


def test_ranks_in_any_order_say_the_same() -> None:
    results = list(job([1, 0, 1]).results)
    told = [compare_ranks(list(order)).stragglers for order in itertools.permutations(results)]  # type: ignore[arg-type]
    assert told[0] == told[1]
