"""How often is a verdict wrong? Resamples comparisons from a pool of recorded rounds of one thing against itself.

    python scripts/bench_verdicts.py FOLDER [--rounds 100] [--target add1] [--load] [--comparisons 1000]

The pool is what ``overhead-lens compare TARGET TARGET`` records (raw blocks and stacks), in pieces under FOLDER that are kept and
used again; ``--load`` keeps another process busy meanwhile. Each comparison draws rounds of the pool without repetition and
tosses a coin for each round which process is the base. A slow-down of 1 % and 5 % of the wall time is added to every block of
the new side, and as many of its stacks are given to the category that is to blame. Beside it, on the same blocks: the t-test of
pyperf (three values a process, all processes pooled) and the medians of torch.utils.benchmark, told apart beyond 1 %.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overhead_lens.analysis.breakdown import Budget
from overhead_lens.analysis.model import Breakdown, Closure, HostCategory, Wall
from overhead_lens.analysis.wall import Floats
from overhead_lens.capture.directory import read_capture
from overhead_lens.capture.record_pair import PAIRED
from overhead_lens.categories import HOST_CATEGORIES, default_classifier
from overhead_lens.cli.store import stacks_per_process
from overhead_lens.compare.difference import compare_budgets
from overhead_lens.compare.student import quantile
from overhead_lens.units import round_to_sum

PIECE_ROUNDS = 20
PYPERF_VALUES = 3
SEED = 7


@dataclass(frozen=True, slots=True)
class Process:
    """One recorded process: ns per call of each block, and sampled stacks per category."""

    blocks_ns: Floats
    counts: Floats


Round = tuple[Process, Process]


def record(folder: Path, target: str, rounds: int, *, load: bool) -> None:
    """Record the pieces of the pool that are missing."""
    for piece in range(-(-rounds // PIECE_ROUNDS)):
        path = folder / str(piece)
        if not (path / "delta.json").exists():
            command = [sys.executable, "-m", "overhead_lens", "compare", target, target, "-q", "-o", str(path)]
            with busy_neighbour(load=load):
                done = subprocess.run([*command, "--rounds", str(PIECE_ROUNDS)], check=False, stdout=subprocess.DEVNULL)
            if done.returncode > 1:
                sys.exit(done.returncode)


@contextmanager
def busy_neighbour(*, load: bool) -> Iterator[None]:
    """Another process that takes a core."""
    if not load:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def read_pool(folder: Path) -> list[Round]:
    """Every round of every piece."""
    classifier = default_classifier(None)
    pool: list[Round] = []
    for path in sorted(folder.iterdir()):
        sides = []
        for side in ("base", "new"):
            capture = read_capture(path / side)
            per_call = capture.clock["wall_ns"] / capture.clock["calls"]
            blocks = [each.to_numpy(np.float64) for _, each in per_call.groupby(capture.clock["process"], sort=True)]
            counts = []
            for stacks in stacks_per_process(capture.folded):
                seen: Counter[str] = Counter()
                for stack in stacks:
                    seen[classifier.classify(stack).claim.category] += stack.count
                counts.append(np.array([seen[name] for name in HOST_CATEGORIES], dtype=np.float64))
            sides.append([Process(*each) for each in zip(blocks, counts, strict=True)])
        pool += zip(*sides, strict=True)
    return pool


def slowed(process: Process, share: float, category: int, random: np.random.Generator) -> Process:
    """The process had every call taken ``share`` longer, in ``category``."""
    added_ns = share * float(np.median(process.blocks_ns))
    moved = random.binomial(process.counts.astype(int), share / (1 + share))
    counts = process.counts - moved
    counts[category] += moved.sum()
    return Process(process.blocks_ns + added_ns, counts)


def budget(processes: Sequence[Process]) -> Budget:
    """The budget of a side, as the analysis makes it from clock and stacks."""
    wall_ns = round(float(np.median([np.median(each.blocks_ns) for each in processes])))
    counts = np.array([each.counts for each in processes])
    pooled = counts.sum(axis=0) / counts.sum()
    sizes = round_to_sum((pooled * wall_ns).tolist(), wall_ns)
    host = tuple(
        HostCategory(n, ns, (ns, ns), ns / wall_ns, "samples") for n, ns in zip(HOST_CATEGORIES, sizes, strict=True)
    )
    calls = sum(len(each.blocks_ns) for each in processes)
    made = Breakdown(
        scenario="pool",
        variant="pool",
        compile=False,
        device_kind="cpu",
        params={},
        wall=Wall(wall_ns, (wall_ns, wall_ns), len(processes), calls, calls, 0.0),
        host=host,
        closure=Closure(wall_ns, 0, None, None, None),
    )
    rows = [
        {"process": process, "block": block, "reference_ns": 1, "call_ns": ns, "undisturbed": True}
        for process, each in enumerate(processes)
        for block, ns in enumerate(each.blocks_ns.tolist())
    ]
    shares = counts / counts.sum(axis=1, keepdims=True)
    unused = np.zeros((1, len(HOST_CATEGORIES)))
    return Budget(made, unused[:, 0], unused, {}, pd.DataFrame(rows), shares, "pool")


def pyperf_verdict(base: Sequence[Process], new: Sequence[Process]) -> str:
    """Student's t-test of pyperf's ``compare_to``: values of all processes, pooled variance, two-sided 95 %."""
    old, recent = (
        np.array([part.mean() for each in side for part in np.array_split(each.blocks_ns, PYPERF_VALUES)])
        for side in (base, new)
    )
    freedom = len(old) + len(recent) - 2
    pooled = ((len(old) - 1) * old.var(ddof=1) + (len(recent) - 1) * recent.var(ddof=1)) / freedom
    t = float((recent.mean() - old.mean()) / np.sqrt(pooled * (1 / len(old) + 1 / len(recent))))
    if abs(t) < quantile(0.025, freedom):
        return "same"
    return "slower" if t > 0 else "faster"


def medians_verdict(base: Sequence[Process], new: Sequence[Process]) -> str:
    """What a reader of torch.utils.benchmark.Compare does: medians over all blocks, told apart beyond 1 %."""
    old, recent = (float(np.median(np.concatenate([each.blocks_ns for each in side]))) for side in (base, new))
    if abs(recent / old - 1) <= 0.01:
        return "same"
    return "slower" if recent > old else "faster"


def resample(pool: Sequence[Round], comparisons: int, rounds: int, share: float) -> dict[str, Any]:
    """Verdicts of many comparisons with a slow-down of ``share``, each in a category that the pool's call has."""
    random = np.random.default_rng(SEED)
    total = sum(process.counts for pair in pool for process in pair)
    present = [index for index in range(len(HOST_CATEGORIES)) if total[index] >= 0.05 * total.sum()]
    verdicts: dict[str, Counter[str]] = {"overhead-lens": Counter(), "pyperf": Counter(), "medians": Counter()}
    blamed = wrong = 0
    detectable = []
    for _ in range(comparisons):
        drawn = [pool[index] for index in random.choice(len(pool), rounds, replace=False)]
        ordered = [pair if random.random() < 0.5 else pair[::-1] for pair in drawn]
        base = [pair[0] for pair in ordered]
        category = present[int(random.integers(len(present)))]
        new = [slowed(pair[1], share, category, random) for pair in ordered]
        delta = compare_budgets(budget(base), budget(new))
        verdicts["overhead-lens"][delta.verdict] += 1
        verdicts["pyperf"][pyperf_verdict(base, new)] += 1
        verdicts["medians"][medians_verdict(base, new)] += 1
        blamed += delta.verdict == "slower" and HOST_CATEGORIES[category] in delta.blame
        wrong += bool(set(delta.blame) - {HOST_CATEGORIES[category]})
        detectable.append(delta.detectable_share)
    return {"verdicts": verdicts, "blamed": blamed, "wrong": wrong, "detectable": statistics.median(detectable)}


def main() -> None:
    """Record what is missing, resample, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=100, help="rounds in the pool, two processes each")
    parser.add_argument("--size", type=int, default=PAIRED.processes, help="rounds of one comparison")
    parser.add_argument("--target", default="add1")
    parser.add_argument("--load", action="store_true", help="keep another process busy while recording")
    parser.add_argument("--comparisons", type=int, default=1_000)
    options = parser.parse_args()
    record(options.folder, options.target, options.rounds, load=options.load)
    pool = read_pool(options.folder)
    level_ns = statistics.median(float(np.median(process.blocks_ns)) for pair in pool for process in pair)
    print(f"{options.target}: {len(pool)} rounds ({2 * len(pool)} processes), {level_ns:.0f} ns per call")
    print(f"{options.comparisons} comparisons of {options.size} rounds")
    print("| slow-down | by | slower | faster | same | inconclusive | blamed right | blamed wrong | detectable |")
    print("|---|---|---|---|---|---|---|---|---|")
    for share in (0.0, 0.01, 0.02, 0.05):
        found = resample(pool, options.comparisons, options.size, share)
        for tool, counts in found["verdicts"].items():
            own = tool == "overhead-lens"
            rates = [
                f"{counts[verdict] / options.comparisons:.1%}"
                for verdict in ("slower", "faster", "same", "inconclusive")
            ]
            blame = [f"{found[key] / options.comparisons:.1%}" if own and share else "" for key in ("blamed", "wrong")]
            detectable = f"{found['detectable']:.2%}" if own else ""
            print(f"| {share:.0%} | {tool} | {' | '.join([*rates, *blame, detectable])} |")


if __name__ == "__main__":
    main()
