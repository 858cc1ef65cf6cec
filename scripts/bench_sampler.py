"""What is a stack worth? Repeated stacks, and the share of a known cost, of one target and of two that are sampled at once.

    python scripts/bench_sampler.py [--rounds 8] [--stacks 500]

Two workers of ``scripts/laboratory`` spin for 10 us in the allocator of a compiled call. Over and over, in random order, each is
sampled alone, each beside a process that holds the other core, and both at once. A stack that is the same to the last frame as
the one before has told nothing: ``n`` stacks of which the share ``d`` are repeats tell as much as ``n (1 - d) / (1 + d)``. Those
of the spin are always the same and do not count there. What is spun is to have the share that bare times say.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from unittest import mock

from overhead_lens.instruments.samples import sampler
from overhead_lens.instruments.samples.sampler import Sampling
from scripts.known_costs.bench import Bench, warmed_up
from scripts.known_costs.sites import SITES

SITE = next(site for site in SITES if site.name == "allocation, compiled")
COST_NS = 10_000
SPUN = "overhead_laboratory::"
WORKERS = 2

# Name: how many are sampled at once, and whether a loop of Python holds the other core.
WAYS = {
    "alone": (1, False),
    "beside a busy core": (1, True),
    "two at once": (2, False),
}


@dataclass(slots=True)
class Found:
    """Of each sampling: seconds, stacks, share of repeats, share of stacks in the known cost."""

    rows: list[tuple[float, int, float, float]] = field(default_factory=list)

    def line(self, name: str) -> str:
        """The row of the table."""
        seconds, stacks, repeats, spun = (list(column) for column in zip(*self.rows, strict=True))
        told = [n * (1 - d) / (1 + d) / s for s, n, d, _ in self.rows]
        error = statistics.stdev(spun) / math.sqrt(len(spun))
        return (
            f"| {name} | {len(self.rows)} | {statistics.mean(stacks):.0f} | {statistics.mean(seconds):.1f} |"
            f" {statistics.mean(repeats):.1%} | {statistics.mean(told):.0f} | {statistics.mean(spun):.1%} ± {1.96 * error:.1%} |"
        )


@contextmanager
def in_order() -> Iterator[None]:
    """Have py-spy keep the order of its stacks."""
    start = sampler._start  # noqa: SLF001

    def ordered(command: list[str]) -> object:
        return start(["speedscope" if word == "raw" else word for word in command])

    with mock.patch.object(sampler, "_start", ordered):
        yield


@contextmanager
def neighbour(core: int | None) -> Iterator[None]:
    """A process that holds a core, if one is named."""
    if core is None:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(process.pid, {core})
    try:
        yield
    finally:
        process.kill()
        process.wait()


def sample(bench: Bench, group: Sequence[int], count: int, found: Found) -> None:
    """Sample these workers at the same time."""
    with ExitStack() as stack:
        start_s = time.monotonic()
        samplings = []
        for process in group:
            worker, _ = bench.workers[process]
            spinning = worker.ask("spin", chunk_ns=20_000_000, tracer_pid=os.getpid())
            stack.callback(worker.stop_spinning)
            samplings.append(stack.enter_context(Sampling(spinning["pid"], count, bench.folder, worker.name, process)))
        runs = [sampling.finish() for sampling in samplings]
        seconds = time.monotonic() - start_s
    for run in runs:
        profile = json.loads(run.folded)
        names = [frame["name"] for frame in profile["shared"]["frames"]]
        stacks = max((each["samples"] for each in profile["profiles"]), key=len)
        spun = [any(names[frame].startswith(SPUN) for frame in each) for each in stacks]
        repeated = [one == other for (one, other), spins in zip(pairwise(stacks), spun, strict=False) if not spins]
        found.rows.append((seconds, len(stacks), statistics.mean(repeated), statistics.mean(spun)))


def main() -> None:
    """Sample in every way, in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--stacks", type=int, default=500, help="of each sampling")
    options = parser.parse_args()
    found = {name: Found() for name in WAYS}
    lot = random.Random(7)
    blocks: dict[int, list[float]] = {0: [], COST_NS: []}
    with in_order(), warmed_up(SITE, WORKERS) as bench:
        for _ in range(options.rounds):
            for process in range(WORKERS):
                for cost_ns, each in blocks.items():
                    row = bench.time_block(process, cost_ns)
                    each.append(row["steady_ns"] / row["calls"])
            for name in lot.sample(list(WAYS), len(WAYS)):
                together, beside = WAYS[name]
                for first in range(0, WORKERS, together):
                    with neighbour(WORKERS - 1 - first if beside else None):
                        sample(bench, range(first, first + together), options.stacks, found[name])
    without_ns, with_ns = (statistics.median(each) for each in blocks.values())
    print(
        f"{SITE.name}: {without_ns:,.0f} ns, with the cost {with_ns:,.0f} ns, of which it is {1 - without_ns / with_ns:.1%}"
    )
    print(
        "| sampled | samplings | stacks | seconds | repeats | independent stacks a second, each | share of the known cost |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, samplings in found.items():
        print(samplings.line(name))


if __name__ == "__main__":
    main()
