"""How often is a verdict wrong? Live comparisons of one thing with itself, and many more that are drawn from their rounds.

    python scripts/bench_verdicts.py FOLDER [--target add1] [--live 10] [--load] [--comparisons 1000]

``overhead-lens compare TARGET TARGET`` is run ``--live`` times into FOLDER (what is there is kept and used again); ``--load``
keeps another process busy meanwhile. Their verdicts are the live result, and their rounds, raw blocks and stacks of two fresh
processes each, are the pool. A comparison drawn from it takes rounds without repetition and tosses a coin for each which process
is the base. A slow-down of 1, 2 and 5 % of the wall time is added to every block of the new side, and as many of its stacks are
given to one frame: of a function that was not there before, in any category that the call has, or of one that was, drawn in
proportion to its time. Beside it, on the same blocks: the t-test of pyperf (three values a process, all processes pooled) and the
medians of torch.utils.benchmark, told apart beyond 1 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from overhead_lens.cli.store import stacks_per_process

from overhead_lens.budget.make import Budget
from overhead_lens.budget.model import Breakdown, Closure, HostCategory, Wall
from overhead_lens.budget.shares import shares_of_stacks
from overhead_lens.budget.wall import time_column
from overhead_lens.captures.directory import read_capture
from overhead_lens.compare.difference import compare_budgets
from overhead_lens.stats.distributions import t_quantile
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy.categories import HOST_CATEGORIES, default_classifier
from overhead_lens.units import round_to_sum

PYPERF_VALUES = 3
SEED = 7
SLOW_DOWNS = (0.01, 0.02, 0.05)

# A category of less is not there to be blamed.
LEAST_SHARE = 0.05

# The frame of a function that was not there before.
ADDED = "(added)"


@dataclass(frozen=True, slots=True)
class Process:
    """One recorded process.

    Attributes:
        blocks_ns: Steady time per call of each block.
        means_ns: Mean time per call of each block.
        compilations: Which of the process's compilations each block is of.
        counts: Sampled stacks per frame of the pool; all 0 if it was not sampled.
    """

    blocks_ns: Floats
    means_ns: Floats
    compilations: Floats
    counts: Floats


Round = tuple[Process, Process]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pool:
    """What was recorded.

    Attributes:
        keys: Category and frame of each count; one ``ADDED`` of every category is among them.
        rounds: All of them.
        verdicts: Of the live comparisons.
        size: Rounds of each: sampled ones and others.
    """

    keys: Sequence[Key]
    rounds: Sequence[Round]
    verdicts: Counter[str]
    size: tuple[int, int]


def record(folder: Path, target: str, live: int, *, load: bool) -> None:
    """Run the comparisons that are missing."""
    for number in range(live):
        path = folder / str(number)
        if not (path / "delta.json").exists():
            command = [sys.executable, "-m", "overhead_lens", "compare", target, target, "-q", "-o", str(path)]
            with busy_neighbour(load=load):
                start = time.perf_counter()
                done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode > 1:
                sys.exit(f"compare ended with {done.returncode}")
            (path / "seconds").write_text(f"{time.perf_counter() - start:.1f}\n", encoding="ascii")


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


def read_pool(folder: Path) -> Pool:
    """Every round of every comparison."""
    classifier = default_classifier(None)
    verdicts: Counter[str] = Counter()
    blocks: list[list[tuple[Floats, Floats, Floats]]] = []
    counts: list[list[Counter[Key]]] = []
    for path in sorted(folder.iterdir()):
        verdicts[json.loads((path / "delta.json").read_text(encoding="utf-8"))["verdict"]] += 1
        captures = [read_capture(path / side) for side in ("base", "new")]
        for side, capture in enumerate(captures):
            found = [
                (
                    steady_ns(rows),
                    (rows["wall_ns"] / rows["calls"]).to_numpy(np.float64),
                    rows["compilation"].to_numpy(np.float64),
                )
                for _, rows in capture.clock.groupby("process", sort=True)
            ]
            shares = shares_of_stacks(stacks_per_process(capture.folded), classifier)
            every = capture.meta["effort"]["sampled_every"]
            seen = [
                Counter({key: each[number // every] for key, each in shares.counts.items()})
                if number % every == 0
                else Counter()
                for number in range(len(found))
            ]
            if side == 0:
                blocks += [[each] for each in found]
                counts += [[each] for each in seen]
            else:
                for number in range(len(found)):
                    blocks[number - len(found)].append(found[number])
                    counts[number - len(found)].append(seen[number])
    known = {key for pair in counts for each in pair for key in each}
    keys = sorted({*known, *((category, ADDED) for category, _ in known)})
    rounds = [
        (
            Process(*pair[0], np.array([seen[0][key] for key in keys])),
            Process(*pair[1], np.array([seen[1][key] for key in keys])),
        )
        for pair, seen in zip(blocks, counts, strict=True)
    ]
    comparisons = max(1, verdicts.total())
    of_sampled = sum(process.counts.any() for process, _ in rounds) // comparisons
    return Pool(keys, rounds, verdicts, (of_sampled, len(rounds) // comparisons - of_sampled))


def steady_ns(rows: pd.DataFrame) -> Floats:
    """What the comparison takes for the time of a block, per call."""
    per_call: Floats = (rows[time_column(rows)] / rows["calls"]).to_numpy(np.float64)
    return per_call


def slowed(process: Process, share: float, frame: int, random: np.random.Generator) -> Process:
    """The process had every call taken ``share`` longer, in ``frame``."""
    added_ns = share * float(np.median(process.blocks_ns))
    moved = random.binomial(process.counts.astype(int), share / (1 + share))
    counts = process.counts - moved
    counts[frame] += moved.sum()
    return replace(process, blocks_ns=process.blocks_ns + added_ns, means_ns=process.means_ns + added_ns, counts=counts)


def budget(keys: Sequence[Key], processes: Sequence[Process]) -> Budget:
    """The budget of a side, as the analysis makes it from clock and stacks."""
    wall_ns = round(float(np.median([np.median(each.blocks_ns) for each in processes])))
    by_frame = np.array([each.counts for each in processes if each.counts.any()])
    columns = np.array([HOST_CATEGORIES.index(category) for category, _ in keys])
    counts = np.stack([by_frame[:, columns == index].sum(axis=1) for index in range(len(HOST_CATEGORIES))], axis=1)
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
        pd.DataFrame({"call_ns": each.blocks_ns, "mean_ns": each.means_ns, "compilation": each.compilations})
        .rename_axis("block")
        .reset_index()
        .assign(process=process, reference_ns=1, undisturbed=True)
        for process, each in enumerate(processes)
    ]
    shares = counts / counts.sum(axis=1, keepdims=True)
    unused = np.zeros((1, len(HOST_CATEGORIES)))
    stacks = {key: by_frame[:, index] for index, key in enumerate(keys) if by_frame[:, index].any()}
    return Budget(made, unused[:, 0], unused, {}, pd.concat(rows), shares, stacks, "pool")


def pyperf_verdict(base: Sequence[Process], new: Sequence[Process]) -> str:
    """Student's t-test of pyperf's ``compare_to``: values of all processes, pooled variance, two-sided 95 %."""
    old, recent = (
        np.array([part.mean() for each in side for part in np.array_split(each.blocks_ns, PYPERF_VALUES)])
        for side in (base, new)
    )
    freedom = len(old) + len(recent) - 2
    pooled = ((len(old) - 1) * old.var(ddof=1) + (len(recent) - 1) * recent.var(ddof=1)) / freedom
    t = float((recent.mean() - old.mean()) / np.sqrt(pooled * (1 / len(old) + 1 / len(recent))))
    if abs(t) < t_quantile(0.025, freedom):
        return "same"
    return "slower" if t > 0 else "faster"


def medians_verdict(base: Sequence[Process], new: Sequence[Process]) -> str:
    """What a reader of torch.utils.benchmark.Compare does: medians over all blocks, told apart beyond 1 %."""
    old, recent = (float(np.median(np.concatenate([each.blocks_ns for each in side]))) for side in (base, new))
    if abs(recent / old - 1) <= 0.01:
        return "same"
    return "slower" if recent > old else "faster"


@dataclass(slots=True)
class Tally:
    """Verdicts by tool, and of the own ones how often the right category was named first, and how often a wrong one at all."""

    verdicts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in ("overhead-lens", "pyperf", "medians")}
    )
    right: int = 0
    wrong: int = 0


def frames_to_slow(pool: Pool, *, added: bool) -> tuple[list[int], Floats]:
    """Frames that a slow-down may hit, and how often each does."""
    total = np.sum([process.counts for pair in pool.rounds for process in pair], axis=0)
    of_category: Counter[str] = Counter()
    for (category, _), count in zip(pool.keys, total.tolist(), strict=True):
        of_category[category] += count
    if added:
        large = [name for name, count in of_category.items() if count >= LEAST_SHARE * total.sum()]
        frames = [pool.keys.index((name, ADDED)) for name in large]
        return frames, np.full(len(frames), 1 / len(frames))
    return list(range(len(total))), total / total.sum()


def resample(pool: Pool, comparisons: int, share: float, *, added: bool) -> Tally:
    """Verdicts of many comparisons with a slow-down of ``share`` in a frame, added or not."""
    random = np.random.default_rng(SEED)
    frames, weights = frames_to_slow(pool, added=added)
    tally = Tally()
    sampled = [pair for pair in pool.rounds if pair[0].counts.any()]
    others = [pair for pair in pool.rounds if not pair[0].counts.any()]
    for _ in range(comparisons):
        drawn = [
            of_kind[index]
            for of_kind, count in zip((sampled, others), pool.size, strict=True)
            for index in random.choice(len(of_kind), count, replace=False)
        ]
        ordered = [pair if random.random() < 0.5 else pair[::-1] for pair in drawn]
        base = [pair[0] for pair in ordered]
        frame = int(random.choice(frames, p=weights))
        category = pool.keys[frame][0]
        new = [slowed(pair[1], share, frame, random) for pair in ordered]
        delta = compare_budgets(budget(pool.keys, base), budget(pool.keys, new))
        tally.verdicts["overhead-lens"][delta.verdict] += 1
        tally.verdicts["pyperf"][pyperf_verdict(base, new)] += 1
        tally.verdicts["medians"][medians_verdict(base, new)] += 1
        tally.right += delta.verdict == "slower" and delta.blame[:1] == (category,)
        tally.wrong += bool(set(delta.blame) - ({category} if share else set()))
    return tally


def spreads(pool: Pool) -> tuple[float, float]:
    """Standard deviation of a round's difference as a share of the call: by the blocks' steady times, and by their means."""
    found = []
    for name in ("blocks_ns", "means_ns"):
        shifts = []
        for pair in pool.rounds:
            old, new = (getattr(process, name) for process in pair)
            count = min(len(old), len(new))
            of_blocks = pd.Series(new[:count] - old[:count]).groupby(pair[0].compilations[:count])
            shifts.append(of_blocks.median().mean() / np.median(old))
        found.append(float(np.std(shifts, ddof=1)))
    return found[0], found[1]


def main() -> None:
    """Record what is missing, resample, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="add1")
    parser.add_argument("--live", type=int, default=10, help="comparisons to run")
    parser.add_argument("--load", action="store_true", help="keep another process busy meanwhile")
    parser.add_argument("--comparisons", type=int, default=1_000)
    options = parser.parse_args()
    record(options.folder, options.target, options.live, load=options.load)
    pool = read_pool(options.folder)
    processes = [process for pair in pool.rounds for process in pair]
    level_ns = statistics.median(float(np.median(process.blocks_ns)) for process in processes)
    stacks = statistics.mean(process.counts.sum() for process in processes if process.counts.any())
    seconds = [float(path.read_text(encoding="ascii")) for path in options.folder.glob("*/seconds")]
    print(
        f"{options.target}: {len(processes)} processes in {len(pool.rounds)} rounds, {level_ns:.0f} ns per call,",
        end=" ",
    )
    print(f"{stacks:.0f} stacks a sampled process, {statistics.median(seconds or [0]):.0f} s a comparison")
    print(f"live, against itself: {', '.join(f'{count} {name}' for name, count in sorted(pool.verdicts.items()))}")
    steady, means = spreads(pool)
    print(f"spread of a round's difference: {steady:.2%} by the steady times of blocks, {means:.2%} by their means")
    print(f"{options.comparisons} comparisons of {sum(pool.size)} rounds, seed {SEED}")
    print(
        "| slow-down | in | by | slower | faster | same | inconclusive | right one blamed first | a wrong one blamed |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for share, added in ((0.0, True), *((share, added) for added in (True, False) for share in SLOW_DOWNS)):
        tally = resample(pool, options.comparisons, share, added=added)
        where = ("a new function" if added else "a function there was") if share else ""
        for tool, counts in tally.verdicts.items():
            own = tool == "overhead-lens"
            rates = [counts[verdict] for verdict in ("slower", "faster", "same", "inconclusive")]
            blame = [tally.right if share else None, tally.wrong] if own else [None, None]
            cells = ["" if each is None else f"{each / options.comparisons:.1%}" for each in (*rates, *blame)]
            print(f"| {share:.0%} | {where} | {tool} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
