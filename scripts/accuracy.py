"""How right is a budget? Known costs are put into known places, and the difference of two budgets is held against them.

    python scripts/accuracy.py [--sites NAME ...] [--costs NS ...] [--seconds S] [--json FILE]

A site is a place of ``scripts/laboratory`` in an eager or a compiled call. Its fresh worker processes switch the cost while
they run. In each, blocks of the bare loop are timed, without the cost and with every cost in turn, over and over; half-way
the loop is sampled at every cost in turn, too, so that what drifts in a process drifts alike in both. Two processes are sampled
at the same time where two cores are idle::

    process   | 0  50  200 .. | ... | samples at 0 | at 50 | ... | samples at 0 | ... | 0  50  200 .. | ...
               round 1                ------- turn 1 of py-spy ----  turn 2              round 11

The truth is the difference of the bare wall times, paired by round, but for rounds in which the reference loop shows the machine
disturbed. What is judged is the product's own budget
(``overhead_lens.analysis.breakdown.make_budget``) with the cost less that without it. A cell passes if the right category
moved most, by the bare difference give or take 10 % or 60 ns, and no other category moved by more than that. One that does not,
but by no more than its sampling error and the interval of the truth explain, is ``unresolved``: more seconds would tell. Beside
it stands what the product says of the same two captures when it compares them (``overhead_lens.compare.difference``): the
category that it blames first, and by how much; it passes by the same rule.

The file that ``--json`` names keeps each site as soon as it is judged. Cells that it holds already are not measured again, so
that a run that was broken off goes on, and single cells can be measured for longer before the rest.
"""

from __future__ import annotations

import argparse
import json
import math
import mmap
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.analysis.breakdown import Budget, Evidence, make_budget
from overhead_lens.analysis.wall import estimate_per_call, undisturbed
from overhead_lens.capture.cores import idle_cores
from overhead_lens.capture.process import Worker
from overhead_lens.capture.sampler import Sampling
from overhead_lens.categories import HOST_CATEGORIES, Classifier, default_classifier
from overhead_lens.cli.store import stacks_per_process
from overhead_lens.compare.difference import compare_budgets
from overhead_lens.compare.tails import quantile
from overhead_lens.stack import Stack

LABORATORY = Path(__file__).resolve().parent / "laboratory"
sys.path.insert(0, str(LABORATORY))

from known_cost import CELL_BYTES, COMPILE_NS, KEPT_SHAPES  # noqa: E402

RULES = LABORATORY / "rules.toml"

COSTS_NS = (50, 200, 1_000, 10_000, 100_000)
PROCESSES = 6
TOLERATED_SHARE = 0.1
TOLERATED_NS = 60.0

_ROUNDS = 20
_BLOCK_NS = 20_000_000
_PIECES = 80
_STEP_TIMEOUT_S = 300.0

# What a normal variable exceeds, either way, in 5 % of cases.
_NORMAL = 1.96

# Processes that are sampled at the same time.
_AT_ONCE = 2

# The sampler's rate, and since py-spy runs for whole seconds what a process gives at least and in multiples.
_SAMPLES_PER_S = 300

# How often all costs are sampled in turn, so that a drift within a process meets them alike.
_TURNS = 5


@dataclass(frozen=True, slots=True)
class Site:
    """A place for a cost.

    Attributes:
        name: As in the table.
        file: Scenario file of the laboratory, without its ending.
        category: Where its time belongs.
        variant: Variant of the scenario; None for the default.
        compiled: Whether torch.compile is applied to the variant.
        least_ns: The smallest cost the place can take: a page fault is no shorter.
        most_ns: The largest.
        block_ns: Length of a timed block.
        event_ns: What the cost's single event takes where not every call has one; 0 where every call has.
        events: How many of them a block holds then.
        steady: Whether every call costs the same, so that blocks are timed in pieces, the middle one of which counts.
        threads: Whether the call runs on two threads, so that one process at a time is warmed up and sampled.
    """

    name: str
    file: str
    category: str
    variant: str | None = None
    compiled: bool = False
    least_ns: int = 0
    most_ns: int = 1_000_000
    block_ns: int = _BLOCK_NS
    event_ns: int = 0
    events: int = 0
    steady: bool = True
    threads: bool = False

    def calls_per_block(self, call_ns: float, cost_ns: int) -> int:
        """Calls that make a block: of the site's length, or a whole number of events, so that no block has one more."""
        if cost_ns and self.event_ns:
            return self.events * -(-self.event_ns // cost_ns)
        return max(1, round(self.block_ns / (call_ns + cost_ns)))


SITES = (
    Site("allocation, eager", "allocation", "allocation"),
    Site("allocation, compiled", "allocation", "allocation", compiled=True),
    Site("dispatch, eager", "dispatch", "dispatcher"),
    Site("dispatch, compiled", "dispatch", "dispatcher", "product", compiled=True),
    Site("kernel, eager", "kernel", "kernel"),
    Site("kernel, compiled", "kernel", "kernel", compiled=True),
    Site("binding, eager", "binding", "python"),
    Site("user_code, eager", "user_code", "python"),
    Site("user_code, compiled", "user_code", "python", "beside_compiled"),
    Site("library_code, eager", "library_code", "python"),
    Site("lambda_guard, compiled", "lambda_guard", "guard", compiled=True),
    Site("many_guards, compiled", "many_guards", "guard", least_ns=200, most_ns=10_000),
    # The thread's system time is accounted by a tick of some ms: only long blocks tell it.
    Site("page_fault, eager", "page_fault", "allocation", least_ns=1_000, block_ns=10 * _BLOCK_NS),
    Site(
        "recompile, compiled",
        "recompile",
        "compile",
        least_ns=10_000,
        block_ns=10 * _BLOCK_NS,
        event_ns=COMPILE_NS,
        events=KEPT_SHAPES,
        steady=False,
    ),
    Site("kernel, two threads", "threads", "kernel", "kernel", least_ns=1_000, threads=True),
    Site("user_code, two threads", "threads", "python", "user_code", least_ns=200, threads=True),
)


@dataclass(slots=True)
class Readings:
    """What was measured at one cost: block rows, and per process the sampled stacks of the measured loop."""

    rows: list[dict[str, int]] = field(default_factory=list)
    stacks: list[list[Stack]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cell:
    """The verdict on one site at one cost; all in ns per call.

    Attributes:
        site: Its name.
        cost_ns: What was asked for.
        bare_ns: Difference of the bare wall times: the truth.
        bare_ci95_ns: Its interval.
        category: The right one.
        first: The one that moved most.
        moved_ns: How far the right category moved.
        sampling_ns: 95 % half-width of that from sampling: what processes differ by, or the number of stacks allows.
        other: Of the other categories, the one that moved most.
        other_ns: How far it moved.
        other_sampling_ns: 95 % half-width of that.
        samples: Stacks without the cost, and with it.
        blamed: The category that the product's comparison blames first; None if it blames none.
        blamed_ns: By how much it says that this one moved.
        blamed_besides_ns: The most that it says of another one it blames.
    """

    site: str
    cost_ns: int
    bare_ns: float
    bare_ci95_ns: tuple[float, float]
    category: str
    first: str
    moved_ns: int
    sampling_ns: float
    other: str
    other_ns: int
    other_sampling_ns: float
    samples: tuple[int, int]
    blamed: str | None
    blamed_ns: int
    blamed_besides_ns: int

    @property
    def found(self) -> bool:
        """Whether the comparison blames the right category, by the right size, and no other for more than is tolerated."""
        off_ns = max(abs(self.blamed_ns - self.bare_ns), abs(self.blamed_besides_ns))
        return self.blamed == self.category and off_ns <= self.tolerated_ns

    @property
    def right(self) -> bool:
        """Whether the right category moved most."""
        return self.first == self.category

    @property
    def tolerated_ns(self) -> float:
        """How far a category may be off."""
        return max(TOLERATED_SHARE * self.bare_ns, TOLERATED_NS)

    @property
    def passed(self) -> bool:
        """Right, of the right size, and nothing else moved."""
        return self.right and max(abs(self.moved_ns - self.bare_ns), abs(self.other_ns)) <= self.tolerated_ns

    @property
    def explained(self) -> bool:
        """Whether what is not known explains by how much the right category and the other one are further off than tolerated.

        That is the sampling error of both, and of the right one also the interval of the bare difference it is held against.
        """
        off_ns = self.moved_ns - self.bare_ns
        low_ns, high_ns = self.bare_ci95_ns
        bare_error_ns = high_ns - self.bare_ns if off_ns > 0 else self.bare_ns - low_ns
        return (
            abs(off_ns) <= self.tolerated_ns + math.hypot(self.sampling_ns, bare_error_ns)
            and abs(self.other_ns) <= self.tolerated_ns + self.other_sampling_ns
        )

    @property
    def verdict(self) -> str:
        """``pass``, ``unresolved`` (what is not known is too much to tell) or ``FAIL``."""
        return "pass" if self.passed else "unresolved" if self.explained else "FAIL"


class Switch:
    """The cell of memory in a file through which running workers read the cost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(CELL_BYTES))
        with path.open("r+b") as file:
            self._cell = memoryview(mmap.mmap(file.fileno(), CELL_BYTES)).cast("q")

    def set(self, cost_ns: int) -> None:
        """Make every call cost ``cost_ns`` more from now on."""
        self._cell[0] = cost_ns


@dataclass(frozen=True, slots=True)
class Bench:
    """Workers of one site, warmed up and waiting.

    Attributes:
        site: The site.
        folder: For logs and the sampler's output.
        switch: Sets the cost.
        workers: Each with ns per call without a cost.
        about: What the first worker says of its workload.
    """

    site: Site
    folder: Path
    switch: Switch
    workers: Sequence[tuple[Worker, float]]
    about: dict[str, Any]

    def time(self, process: int, costs_ns: Sequence[int], rounds: range) -> dict[int, list[dict[str, int]]]:
        """Rows of blocks per cost, one block per cost and round; a round that is thrown away comes first."""
        rows: dict[int, list[dict[str, int]]] = {cost_ns: [] for cost_ns in costs_ns}
        for number in (-1, *rounds):
            for cost_ns in costs_ns:
                row = self.time_block(process, cost_ns)
                if number >= 0:
                    rows[cost_ns].append({**row, "block": number, "process": process})
        return rows

    def time_block(self, process: int, cost_ns: int) -> dict[str, int]:
        """One block at one cost; the first may compile."""
        worker, block_ns = self._at(process, cost_ns)
        pieces = {"piece_ns": max(1, block_ns // _PIECES)} if self.site.steady else {}
        row: dict[str, int] = worker.ask("clock", block_ns=block_ns, blocks=1, budget_ns=0, **pieces)["rows"][0]
        return row

    def sample(self, processes: Sequence[int], cost_ns: int, count: int) -> list[list[Stack]]:
        """About ``count`` stacks of each process's loop at one cost: at once where as many cores are idle, else in turn."""
        cores: Sequence[int | None] = idle_cores()
        if self.site.threads or len(cores) < len(processes):
            cores = [None]
        together = min(len(cores), len(processes))
        groups = [processes[at : at + together] for at in range(0, len(processes), together)]
        return [found for group in groups for found in self._sample_at_once(group, cost_ns, count, cores)]

    def _sample_at_once(
        self, processes: Sequence[int], cost_ns: int, count: int, cores: Sequence[int | None]
    ) -> list[list[Stack]]:
        with ExitStack() as stack:
            samplings = []
            for process, core in zip(processes, cores, strict=False):
                worker, chunk_ns = self._at(process, cost_ns)
                spinning = worker.ask("spin", chunk_ns=chunk_ns, tracer_pid=os.getpid())
                stack.callback(worker.stop_spinning)
                sampling = Sampling(spinning["pid"], count, self.folder, worker.name, core, threads=self.site.threads)
                samplings.append(stack.enter_context(sampling))
            runs = [sampling.finish() for sampling in samplings]
        return [
            [each for stacks in stacks_per_process(tuple(run.folded.splitlines())) for each in stacks] for run in runs
        ]

    def measure_page_faults(self, process: int) -> dict[str, int]:
        """What they take beside the operating system's own time; budgets of calls without any make no use of it."""
        worker, _ = self.workers[process]
        return {"process": process, **worker.ask("page_faults")}

    def _at(self, process: int, cost_ns: int) -> tuple[Worker, int]:
        """A worker with the cost set, and the length of a block as it counts: by what a call took while it warmed up."""
        worker, call_ns = self.workers[process]
        self.switch.set(cost_ns)
        return worker, round(self.site.calls_per_block(call_ns, cost_ns) * call_ns)


@contextmanager
def warmed_up(site: Site, processes: int) -> Iterator[Bench]:
    """Fresh workers of a site; they end with the block."""
    with tempfile.TemporaryDirectory(prefix="overhead_laboratory_") as name:
        folder = Path(name)
        switch = Switch(folder / "cell")
        workers: list[Worker] = []
        try:
            workers += [
                Worker(f"clock-{number}", folder / f"{number}.log", _STEP_TIMEOUT_S) for number in range(processes)
            ]
            for worker in workers:
                worker.send(
                    "load",
                    path=str(LABORATORY / f"{site.file}.py"),
                    variant=site.variant,
                    params={"cell": str(switch.path)},
                    compile_options={} if site.compiled else None,
                )
            about, *_ = [worker.receive("load") for worker in workers]
            call_ns = list(_call_times(site, workers))
            yield Bench(site, folder, switch, list(zip(workers, call_ns, strict=True)), about)
        finally:
            for worker in workers:
                worker.end()


def _call_times(site: Site, workers: Sequence[Worker]) -> Iterator[float]:
    """What a call takes in each worker, in ns; threads that warm up beside others' wait for each other."""
    if site.threads:
        yield from (worker.ask("warm_up")["call_ns"] for worker in workers)
        return
    for worker in workers:
        worker.send("warm_up")
    yield from [worker.receive("warm_up")["call_ns"] for worker in workers]


def plan_samples(call_ns: float, costs_ns: Sequence[int], seconds: float) -> dict[int, int]:
    """Stacks of each process without a cost (key 0) and at each of ``costs_ns``.

    A movement is the difference of two shares times their walls. Each side gets as many stacks as make the movement's standard
    error a third of what is tolerated, if the share is one half, but no more than ``seconds`` allow. What is sampled without a
    cost serves every cell, so there the limit is longer by the root of their number, which makes the cells' errors smallest for
    the time all take together.
    """
    wanted = {cost_ns: _stacks(call_ns + cost_ns, cost_ns) for cost_ns in costs_ns}
    without = max((_stacks(call_ns, cost_ns) for cost_ns in costs_ns), default=0.0)
    limits = dict.fromkeys(costs_ns, seconds) | {0: seconds * math.sqrt(len(costs_ns))}
    return {
        cost_ns: _SAMPLES_PER_S * max(1, math.ceil(min(count / _SAMPLES_PER_S, limits[cost_ns]) / PROCESSES))
        for cost_ns, count in ({0: without} | wanted).items()
    }


def of_turn(count: int, turn: int) -> int:
    """How many of ``count`` stacks are taken in one of the turns: whole seconds of the sampler, the first turns taking more."""
    seconds = count // _SAMPLES_PER_S
    return _SAMPLES_PER_S * (seconds // _TURNS + (turn < seconds % _TURNS))


def _stacks(wall_ns: float, cost_ns: int) -> float:
    """Stacks that make the standard error of half of ``wall_ns`` a third of what is tolerated, divided by the root of two."""
    tolerated_ns = max(TOLERATED_SHARE * cost_ns, TOLERATED_NS)
    return float(2 * (0.5 * wall_ns / (tolerated_ns / 3)) ** 2)


def measure(site: Site, costs_ns: Sequence[int], seconds: float) -> tuple[dict[int, Readings], dict[str, Any]]:
    """Time and sample a site without a cost (key 0) and with each of ``costs_ns``; also what its worker says of itself."""
    readings = {cost_ns: Readings() for cost_ns in (0, *costs_ns)}
    faults = []
    with warmed_up(site, PROCESSES) as bench:
        counts = plan_samples(statistics.median(call_ns for _, call_ns in bench.workers), costs_ns, seconds)
        for first in range(0, PROCESSES, _AT_ONCE):
            group = range(first, min(first + _AT_ONCE, PROCESSES))
            before = [bench.time(process, list(readings), range(_ROUNDS // 2)) for process in group]
            stacks: dict[int, list[list[Stack]]] = {cost_ns: [[] for _ in group] for cost_ns in readings}
            for turn in range(_TURNS):
                for cost_ns in readings:
                    if count := of_turn(counts[cost_ns], turn):
                        for kept, found in zip(stacks[cost_ns], bench.sample(group, cost_ns, count), strict=True):
                            kept.extend(found)
            after = [bench.time(process, list(readings), range(_ROUNDS // 2, _ROUNDS)) for process in group]
            for cost_ns, each in readings.items():
                each.stacks += stacks[cost_ns]
                for rows in zip(before, after, strict=True):
                    each.rows += [row for half in rows for row in half[cost_ns]]
            for process in group:
                faults.append(bench.measure_page_faults(process))
                bench.workers[process][0].end()
    return readings, {**bench.about, "page_faults": faults}


def budget_of(site: Site, readings: Readings, about: dict[str, Any], classifier: Classifier) -> Budget:
    """The product's budget of what was measured at one cost."""
    meta = {**about, "compile": site.compiled, "device": "cpu", "recorded_with": site.name}
    evidence = Evidence(meta, pd.DataFrame(readings.rows), readings.stacks, None, site.name)
    return make_budget(evidence, classifier)


def judge(site: Site, cost_ns: int, measured: tuple[Readings, Readings], budgets: tuple[Budget, Budget]) -> Cell:
    """Hold the difference of two budgets, without and with a cost, against the difference of the bare times."""
    without, injected = measured
    paired = pd.DataFrame(
        {
            "process": [row["process"] for row in injected.rows],
            "calls": 1,
            "reference_ns": [
                max(old["reference_ns"], new["reference_ns"])
                for old, new in zip(without.rows, injected.rows, strict=True)
            ],
            "wall_ns": [
                new.get("steady_ns", new["wall_ns"]) / new["calls"]
                - old.get("steady_ns", old["wall_ns"]) / old["calls"]
                for old, new in zip(without.rows, injected.rows, strict=True)
            ],
        }
    )
    bare = estimate_per_call(undisturbed(paired), "wall_ns")
    old, new = ({each.category: each.ns for each in budget.breakdown.host} for budget in budgets)
    moved = {name: new[name] - old[name] for name in old}
    other = max((name for name in moved if name != site.category), key=lambda name: abs(moved[name]))
    samples = (stack_count(without), stack_count(injected))
    delta = compare_budgets(*budgets)
    sizes = {change.category: change.size_ns for change in delta.host}
    return Cell(
        site.name,
        cost_ns,
        bare.value,
        bare.interval(),
        site.category,
        max(moved, key=lambda name: abs(moved[name])),
        moved[site.category],
        sampling_error(budgets, samples, site.category),
        other,
        moved[other],
        sampling_error(budgets, samples, other),
        samples,
        delta.blame[0] if delta.blame else None,
        sizes[delta.blame[0]] if delta.blame else 0,
        max((sizes[name] for name in delta.blame[1:]), key=abs, default=0),
    )


def stack_count(readings: Readings) -> int:
    """How many stacks the readings hold."""
    return sum(stack.count for stacks in readings.stacks for stack in stacks)


def sampling_error(budgets: Sequence[Budget], samples: Sequence[int], category: str) -> float:
    """95 % half-width in ns of the difference of a category between two budgets, if their walls were exact.

    It is what the movements of the processes, each of which was sampled on both sides, differ by (Student's t), or what so many
    stacks allow where that is more: stacks of one process need not be independent (a compilation gives several in a row), but
    processes are.
    """
    old_ns, new_ns = (
        budget.process_shares[:, HOST_CATEGORIES.index(category)] * budget.breakdown.wall.ns for budget in budgets
    )
    shares = [float(ns.mean()) / budget.breakdown.wall.ns for ns, budget in zip((old_ns, new_ns), budgets, strict=True)]
    of_counts = math.hypot(
        *(
            _NORMAL * math.sqrt(share * (1 - share) / count) * budget.breakdown.wall.ns
            for share, count, budget in zip(shares, samples, budgets, strict=True)
        )
    )
    moved_ns = new_ns - old_ns
    processes = len(moved_ns)
    of_processes = quantile(0.025, processes - 1) * float(moved_ns.std(ddof=1)) / math.sqrt(processes)
    return max(of_counts, of_processes)


def judge_site(site: Site, costs_ns: Sequence[int], seconds: float) -> list[Cell]:
    """Measure a site at every cost it can take and judge each cell."""
    possible = [cost_ns for cost_ns in costs_ns if site.least_ns <= cost_ns <= site.most_ns]
    if not possible:
        return []
    readings, about = measure(site, possible, seconds)
    every = (stack for each in readings.values() for stacks in each.stacks for stack in stacks)
    classifier = default_classifier(RULES).fitted(every)
    budgets = {cost_ns: budget_of(site, each, about, classifier) for cost_ns, each in readings.items()}
    return [
        judge(site, cost_ns, (readings[0], readings[cost_ns]), (budgets[0], budgets[cost_ns])) for cost_ns in possible
    ]


HEADER = """\
| site | cost, ns | bare difference, ns | moved most | right one moved, ns | error, ns | other that moved most, ns | samples | |\
 compared: blamed | by, ns | |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def row_of(cell: Cell) -> str:
    """The cell as a row of the Markdown table."""
    low, high = cell.bare_ci95_ns
    first = cell.first if cell.right else f"**{cell.first}**, not {cell.category}"
    blamed = cell.blamed or "none"
    if cell.blamed not in (cell.category, None):
        blamed = f"**{cell.blamed}**"
    fields = [
        cell.site,
        f"{cell.cost_ns:,}",
        f"{cell.bare_ns:,.0f} [{low:,.0f}, {high:,.0f}]",
        first,
        f"{cell.moved_ns:,} ± {cell.sampling_ns:,.0f}",
        f"{cell.moved_ns - cell.bare_ns:+,.0f}",
        f"{cell.other} {cell.other_ns:+,} ± {cell.other_sampling_ns:,.0f}",
        f"{cell.samples[0]:,} / {cell.samples[1]:,}",
        cell.verdict,
        blamed,
        f"{cell.blamed_ns:+,}" if cell.blamed else "",
        "pass" if cell.found else "FAIL",
    ]
    return f"| {' | '.join(fields)} |"


def read_cells(path: Path | None) -> list[Cell]:
    """The cells that an earlier run has left; none of a file that is not there."""
    if path is None or not path.exists():
        return []
    names = {each.name for each in fields(Cell)}
    rows = json.loads(path.read_text(encoding="utf-8"))
    kept = ({name: value for name, value in row.items() if name in names} for row in rows)
    return [
        Cell(**row | {"bare_ci95_ns": tuple(row["bare_ci95_ns"]), "samples": tuple(row["samples"])}) for row in kept
    ]


def write_cells(path: Path | None, cells: Sequence[Cell]) -> None:
    """Replace the file as a whole: a run that is broken off leaves what was there."""
    if path is None:
        return
    rows = [{**asdict(cell), "right": cell.right, "passed": cell.passed, "verdict": cell.verdict} for cell in cells]
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """By site as in ``SITES``, then by cost."""
    names = [site.name for site in SITES]
    return sorted(cells, key=lambda cell: (names.index(cell.site), cell.cost_ns))


def summary(cells: Sequence[Cell]) -> str:
    """The last line."""
    from_200 = [cell for cell in cells if cell.cost_ns >= 200]
    verdicts = Counter(cell.verdict for cell in cells)
    blamed = sum(cell.blamed == cell.category for cell in from_200)
    wrongly = sum(cell.blamed not in (cell.category, None) for cell in from_200)
    right = sum(cell.right for cell in from_200)
    return (
        f"The right category moved most in {right} of {len(from_200)} cells from 200 ns up; of all "
        f"{len(cells)} cells {verdicts['pass']} pass, {verdicts['FAIL']} fail and {verdicts['unresolved']} are unresolved.\n"
        f"The comparison blames the right one first in {blamed} of {len(from_200)}, another one in {wrongly}; "
        f"{sum(cell.found for cell in cells)} of all {len(cells)} cells pass."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description="Hold budgets against known costs in known places.")
    parser.add_argument("--sites", nargs="+", help="sites whose name begins with one of these; default: all")
    parser.add_argument("--costs", nargs="+", type=int, default=list(COSTS_NS), help="costs in ns")
    parser.add_argument("--seconds", type=float, default=20.0, help="most seconds of sampling per cell")
    parser.add_argument(
        "--json", type=Path, help="keep the cells in this file and do not measure those again that it holds"
    )
    options = parser.parse_args(arguments)
    chosen = [site for site in SITES if not options.sites or site.name.startswith(tuple(options.sites))]
    cells = read_cells(options.json)
    print(HEADER)
    for site in chosen:
        known = [cell for cell in cells if cell.site == site.name and cell.cost_ns in options.costs]
        left = sorted(set(options.costs) - {cell.cost_ns for cell in known})
        found = judge_site(site, left, options.seconds)
        cells = in_order([*cells, *found])
        write_cells(options.json, cells)
        print("\n".join(map(row_of, in_order([*known, *found]))), flush=True)
    shown = [cell for cell in cells if cell.cost_ns in options.costs and cell.site in {site.name for site in chosen}]
    print(f"\n{summary(shown)}")


if __name__ == "__main__":
    main()
