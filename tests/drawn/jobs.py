"""Jobs of several ranks, drawn for tests: the traces of ranks that work, join collectives and wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.model import TraceAnalysis
from tests.drawn.collectives import collective
from tests.drawn.timelines import CLASSIFIER, timed, trace_of


@dataclass(frozen=True)
class Joined:
    """A collective on one rank: when its kernel starts and ends there, by the rank's clock."""

    start: int
    end: int
    group: str = "all"
    sequence: int = 0


def rank_entries(until: int, joined: Sequence[Joined], steps: Sequence[tuple[int, int, int]] = ()) -> list[dict]:
    """A host that runs Python from 0 on, calls each collective for 1 ns, and is blocked from then to 1 ns after its end.

    Args:
        until: When it ends.
        joined: Collectives in order, two or more ns apart.
        steps: Number, start and end of each step.
    """
    entries = [timed(0, until, "train.py(1): main", "python_function")]
    entries += [timed(start, end - start, f"ProfilerStep#{step}", "user_annotation") for step, start, end in steps]
    for number, one in enumerate(joined):
        call = {"correlation": number + 1}
        entries += [
            timed(one.start - 1, 1, "cudaLaunchKernel", "cuda_runtime", **call),
            timed(
                one.start, one.end + 1 - one.start, "cudaDeviceSynchronize", "cuda_runtime", correlation=1000 + number
            ),
            collective(one.start, one.end - one.start, group=one.group, Seq=one.sequence, **call),
        ]
    return entries


def rank_of(number: int, size: int, entries: Sequence[dict]) -> TraceAnalysis:
    """The analysis of one rank of a job, with what a path over ranks needs."""
    metadata = {"distributedInfo": {"rank": number, "world_size": size}}
    analyzer = Analyzer(trace_of(entries, metadata), CLASSIFIER, critical_path=True, is_rank=True)
    return replace(analyzer.analysis(), path=f"rank{number}.json")


def job_of(*ranks: Sequence[dict]) -> list[TraceAnalysis]:
    """The analyses of all ranks of a job, by their events."""
    return [rank_of(number, len(ranks), entries) for number, entries in enumerate(ranks)]
