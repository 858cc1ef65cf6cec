"""How often is a verdict wrong? Live comparisons of one thing with itself, and many more that are drawn from their rounds.

    python -m scripts.validation.verdicts FOLDER [--target add1] [--live 10] [--load] [--comparisons 1000]

``overhead-lens compare TARGET TARGET`` is run ``--live`` times into FOLDER (what is there is kept and used again); ``--load``
keeps another process busy meanwhile. Their verdicts are the live result, and their rounds, blocks and stacks of two fresh
processes each, are the pool. A comparison drawn from it takes rounds without repetition and tosses a coin for each which process
is the base; both sides' budgets are made by the product. A slow-down of 1, 2 and 5 % of the wall time is added to every block of
the new side, and as many of its stacks are given to one function: to one that was not there before, in any category that the call
has, or to one that was, drawn in proportion to its time.
Beside it, on the same blocks: the t-test of pyperf (three values a process, all processes pooled) and the medians of
torch.utils.benchmark, told apart beyond 1 %. Each series has a result of its own: ``verdicts-eager``, ``verdicts-compiled-load``.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from overhead_lens.budget.evidence import Evidence
from overhead_lens.budget.make import Budget, make_budget
from overhead_lens.budget.wall import time_column
from overhead_lens.captures.directory import read_capture
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.difference import compare_budgets
from overhead_lens.instruments.samples.evidence import Samples
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.stats.distributions import t_quantile
from overhead_lens.stats.values import Floats
from overhead_lens.stored import evidence_of
from overhead_lens.taxonomy.classifier import Classifier, default_classifier
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="verdicts",
    question="How often is the verdict of a comparison wrong, and how often does it blame the right category?",
    method=(
        "A call is compared with itself, live, and the rounds of these comparisons are pooled. "
        "Comparisons are drawn from the pool, a slow-down is given to one function of one side, and the product judges them. "
        "Two other tools judge the same blocks."
    ),
    command="python -m scripts.validation.verdicts FOLDER",
    columns=(
        Column("slow-down", "share"),
        Column("in"),
        Column("by"),
        Column("slower", "share"),
        Column("faster", "share"),
        Column("same", "share"),
        Column("inconclusive", "share"),
        Column("right one blamed first", "share"),
        Column("a wrong one blamed", "share"),
    ),
)

OWN = "overhead-lens"
PYPERF = "t-test of pyperf"
MEDIANS = "medians beyond 1 %"
PYPERF_VALUES = 3
SEED = 7
SLOW_DOWNS = (0.01, 0.02, 0.05)

# A category of less is not there to be blamed.
LEAST_SHARE = 0.05

# What a function that was not there before is called, by category; the rules say to which it belongs.
ADDED = "added_to_{}"
RULES = Path(__file__).with_name("verdicts.toml")


@dataclass(frozen=True)
class Process:
    """One recorded process: its blocks, and its stacks, none if it was not sampled."""

    clock: pd.DataFrame
    stacks: Sequence[Stack]

    @cached_property
    def call_ns(self) -> Floats:
        """Steady time per call of each block."""
        per_call: Floats = (self.clock[time_column(self.clock)] / self.clock["calls"]).to_numpy(np.float64)
        return per_call

    @cached_property
    def mean_ns(self) -> Floats:
        """Mean time per call of each block."""
        per_call: Floats = (self.clock["wall_ns"] / self.clock["calls"]).to_numpy(np.float64)
        return per_call


Round = tuple[Process, Process]


@dataclass(frozen=True, slots=True)
class Pool:
    """What was recorded.

    Attributes:
        meta: Of the captures, as recorded in turns.
        rounds: Of all comparisons.
        verdicts: Of the live comparisons.
        classifier: Fitted to the stacks of all rounds.
    """

    meta: CaptureMeta
    rounds: Sequence[Round]
    verdicts: Counter[str]
    classifier: Classifier

    @property
    def sampled(self) -> list[Round]:
        """Rounds whose processes were sampled."""
        return [pair for pair in self.rounds if pair[0].stacks]

    @property
    def not_sampled(self) -> list[Round]:
        """The others."""
        return [pair for pair in self.rounds if not pair[0].stacks]

    def draw(self, random: np.random.Generator) -> list[Round]:
        """As many rounds of either kind as one comparison has, the sampled ones first, each one's sides by lot."""
        comparisons = max(1, self.verdicts.total())
        drawn = [
            of_kind[index]
            for of_kind in (self.sampled, self.not_sampled)
            for index in random.choice(len(of_kind), len(of_kind) // comparisons, replace=False)
        ]
        return [pair if random.random() < 0.5 else pair[::-1] for pair in drawn]

    def budget(self, processes: Sequence[Process]) -> Budget:
        """The product's budget of one side."""
        clock = pd.concat(
            [process.clock.assign(process=number) for number, process in enumerate(processes)], ignore_index=True
        )
        samples = Samples([process.stacks for process in processes if process.stacks])
        return make_budget(Evidence("drawn", self.meta, clock, samples), self.classifier)


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions that a slow-down may hit, as the stacks that it adds to, with their categories and how often each is drawn."""

    stacks: Sequence[Stack]
    categories: Sequence[str]
    weights: Floats


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
    verdicts: Counter[str] = Counter()
    rounds: list[Round] = []
    metas = []
    for path in sorted(each for each in folder.iterdir() if each.is_dir()):
        verdicts[json.loads((path / "delta.json").read_text(encoding="utf-8"))["verdict"]] += 1
        sides = [evidence_of(read_capture(path / side)) for side in ("base", "new")]
        rounds += zip(*map(processes_of, sides), strict=True)
        metas.append(sides[0].meta)
    meta = msgspec.structs.replace(metas[0], warnings=[], recorded_with="pool")
    stacks = (stack for pair in rounds for process in pair for stack in process.stacks)
    return Pool(meta, rounds, verdicts, default_classifier(RULES).fitted(stacks))


def processes_of(evidence: Evidence) -> list[Process]:
    """The timed processes of a capture, of which the first of so many was sampled."""
    every = evidence.meta.effort["sampled_every"]
    stacks = iter(evidence.samples.processes)
    return [
        Process(rows, next(stacks) if number % every == 0 else ())
        for number, (_, rows) in enumerate(evidence.clock.groupby("process", sort=True))
    ]


def slowed(process: Process, share: float, function: Stack, random: np.random.Generator) -> Process:
    """The process if every call had taken ``share`` longer, in ``function``."""
    if not share:
        return process
    added_ns = (share * float(np.median(process.call_ns)) * process.clock["calls"]).round().astype("int64")
    columns = {name: process.clock[name] + added_ns for name in ("wall_ns", "steady_ns") if name in process.clock}
    clock = process.clock.assign(**columns)
    if not process.stacks:
        return Process(clock, ())
    taken = random.binomial([stack.count for stack in process.stacks], share / (1 + share)).tolist()
    left = [
        replace(stack, count=stack.count - count)
        for stack, count in zip(process.stacks, taken, strict=True)
        if stack.count > count
    ]
    return Process(clock, [*left, replace(function, count=sum(taken))] if sum(taken) else left)


def added_functions(pool: Pool) -> Functions:
    """A function that was not there before, in each category that is large enough to be blamed."""
    of_category: Counter[str] = Counter()
    for stack in _all_stacks(pool):
        of_category[pool.classifier.classify(stack).attribution.category] += stack.count
    loop = _all_stacks(pool)[0].frames[0]
    large = {
        name: Stack((loop, StackFrame(ADDED.format(name), "added.so", 0, native=True)), 1)
        for name, count in of_category.items()
        if count >= LEAST_SHARE * of_category.total()
    }
    for name, stack in large.items():
        if pool.classifier.classify(stack).attribution.category != name:
            raise ValueError(f"{RULES.name} has no rule for {name}")
    return Functions(list(large.values()), list(large), np.full(len(large), 1 / len(large)))


def known_functions(pool: Pool) -> Functions:
    """Every function that was there, by its share of the stacks."""
    stacks = _all_stacks(pool)
    counts = np.array([stack.count for stack in stacks], dtype=np.float64)
    categories = [pool.classifier.classify(stack).attribution.category for stack in stacks]
    return Functions(stacks, categories, counts / counts.sum())


def _all_stacks(pool: Pool) -> list[Stack]:
    return [stack for pair in pool.rounds for process in pair for stack in process.stacks]


def pyperf_verdict(base: Sequence[Process], new: Sequence[Process]) -> str:
    """Student's t-test of pyperf's ``compare_to``: values of all processes, pooled variance, two-sided 95 %."""
    old, recent = (
        np.array([part.mean() for each in side for part in np.array_split(each.call_ns, PYPERF_VALUES)])
        for side in (base, new)
    )
    degrees_of_freedom = len(old) + len(recent) - 2
    pooled = ((len(old) - 1) * old.var(ddof=1) + (len(recent) - 1) * recent.var(ddof=1)) / degrees_of_freedom
    t = float((recent.mean() - old.mean()) / np.sqrt(pooled * (1 / len(old) + 1 / len(recent))))
    if abs(t) < t_quantile(0.025, degrees_of_freedom):
        return "same"
    return "slower" if t > 0 else "faster"


def medians_verdict(base: Sequence[Process], new: Sequence[Process]) -> str:
    """What a reader of torch.utils.benchmark.Compare does: medians over all blocks, told apart beyond 1 %."""
    old, recent = (float(np.median(np.concatenate([each.call_ns for each in side]))) for side in (base, new))
    if abs(recent / old - 1) <= 0.01:
        return "same"
    return "slower" if recent > old else "faster"


@dataclass(slots=True)
class Tally:
    """Verdicts by tool, and of the own ones how often the right category was named first, and how often a wrong one at all."""

    verdicts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in (OWN, PYPERF, MEDIANS)}
    )
    right: int = 0
    wrong: int = 0

    def rows(self, share: float, where: str) -> list[list[Cell]]:
        """A row for each tool."""
        rows = []
        for tool, counts in self.verdicts.items():
            total = counts.total()
            blame = [self.right / total if share else None, self.wrong / total] if tool == OWN else [None, None]
            rates = [counts[verdict] / total for verdict in ("slower", "faster", "same", "inconclusive")]
            rows.append([share, where, tool, *rates, *blame])
        return rows


def resample(pool: Pool, comparisons: int, share: float, functions: Functions) -> Tally:
    """Verdicts of many comparisons with a slow-down of ``share`` in one of ``functions``."""
    random = np.random.default_rng(SEED)
    tally = Tally()
    for _ in range(comparisons):
        drawn = pool.draw(random)
        at = int(random.choice(len(functions.weights), p=functions.weights))
        base = [pair[0] for pair in drawn]
        new = [slowed(pair[1], share, functions.stacks[at], random) for pair in drawn]
        delta = compare_budgets(pool.budget(base), pool.budget(new))
        tally.verdicts[OWN][delta.verdict] += 1
        tally.verdicts[PYPERF][pyperf_verdict(base, new)] += 1
        tally.verdicts[MEDIANS][medians_verdict(base, new)] += 1
        category = functions.categories[at]
        tally.right += delta.verdict == "slower" and delta.blame[:1] == (category,)
        tally.wrong += bool(set(delta.blame) - ({category} if share else set()))
    return tally


def spreads(pool: Pool) -> tuple[float, float]:
    """Standard deviation of a round's difference as a share of the call: by the blocks' steady times, and by their means."""
    steady: list[float] = []
    means: list[float] = []
    for base, new in pool.rounds:
        level_ns = float(np.median(base.call_ns))
        compilation = base.clock["compilation"].to_numpy()
        for found, old, recent in ((steady, base.call_ns, new.call_ns), (means, base.mean_ns, new.mean_ns)):
            count = min(len(old), len(recent))
            of_blocks = pd.Series(recent[:count] - old[:count]).groupby(compilation[:count])
            found.append(float(of_blocks.median().mean()) / level_ns)
    return statistics.stdev(steady), statistics.stdev(means)


def notes_on(pool: Pool, folder: Path, comparisons: int) -> list[str]:
    """What was recorded, and how the live comparisons ended."""
    processes = [process for pair in pool.rounds for process in pair]
    level_ns = statistics.median(float(np.median(process.call_ns)) for process in processes)
    stacks = statistics.mean(sum(stack.count for stack in each.stacks) for each in processes if each.stacks)
    seconds = [float(path.read_text(encoding="ascii")) for path in folder.glob("*/seconds")]
    steady, means = spreads(pool)
    live = ", ".join(f"{count} {name}" for name, count in sorted(pool.verdicts.items()))
    return [
        f"{len(processes)} processes in {len(pool.rounds)} rounds, {level_ns:.0f} ns per call.",
        f"{stacks:.0f} stacks a sampled process; {statistics.median(seconds or [0]):.0f} s a comparison.",
        f"Live, against itself: {live}.",
        f"Spread of a round's difference: {steady:.2%} by the steady times of blocks, {means:.2%} by their means.",
        f"{comparisons} comparisons drawn for each slow-down, seed {SEED}.",
    ]


def main() -> None:
    """Record what is missing, resample, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="add1")
    parser.add_argument("--live", type=int, default=10, help="comparisons to run")
    parser.add_argument("--load", action="store_true", help="keep another process busy meanwhile")
    parser.add_argument("--comparisons", type=int, default=1_000)
    options = parser.parse_args()
    record(options.folder, options.target, options.live, load=options.load)
    pool = read_pool(options.folder)
    notes = notes_on(pool, options.folder, options.comparisons)
    print(*notes, "", sep="\n")
    print_heading(CLAIM.columns)
    rows: list[list[Cell]] = []
    added, known = added_functions(pool), known_functions(pool)
    plan = [(0.0, "", added)]
    plan += [(share, "a new function", added) for share in SLOW_DOWNS]
    plan += [(share, "a function there was", known) for share in SLOW_DOWNS]
    for share, where, functions in plan:
        found = resample(pool, options.comparisons, share, functions).rows(share, where)
        rows += found
        for row in found:
            print_row(row)
    write_result(options.result, series_of(options.target, options.live, load=options.load).answered(rows, notes))


def series_of(target: str, live: int, *, load: bool) -> Claim:
    """The claim of one series, ``verdicts-compiled-load``."""
    name = f"{CLAIM.claim}-{'compiled' if '--compile' in target else 'eager'}{'-load' if load else ''}"
    options = f'--target "{target}" --live {live}{" --load" if load else ""}'
    return replace(CLAIM, claim=name, command=f"{CLAIM.command} {options}")


if __name__ == "__main__":
    main()
