"""Timing and sampling a site while its cost is switched."""

from __future__ import annotations

import math
import mmap
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from overhead_lens.captures.model import CaptureMeta
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.clock.record import TIME_BLOCKS
from overhead_lens.instruments.instrument import measure_at_once
from overhead_lens.instruments.page_faults.record import MEASURE as MEASURE_PAGE_FAULTS
from overhead_lens.instruments.page_faults.record import Touched
from overhead_lens.instruments.samples.record import SampleStacks, stacks_per_process
from overhead_lens.machine.cores import idle_cores
from overhead_lens.machine.operations import LOAD, WARM_UP
from overhead_lens.machine.process import Worker, ask_all
from overhead_lens.machine.request import Request
from overhead_lens.recorder.side import subject_of
from overhead_lens.stack import Stack
from overhead_lens.target import Target
from scripts.validation.known_costs.cell import TOLERATED_NS, TOLERATED_SHARE
from scripts.validation.known_costs.sites import LABORATORY, Site
from scripts.validation.laboratory.known_cost import CELL_BYTES

PROCESSES = 12
_ROUNDS = 20
_PIECES = 80
_STEP_TIMEOUT_S = 300.0

# Processes that are sampled at the same time.
_AT_ONCE = 2

# The sampler's rate, and since py-spy runs for whole seconds what a process gives at least and in multiples.
_SAMPLES_PER_S = 300

# How often all costs are sampled in turn, so that a drift within a process meets them alike.
_TURNS = 3


@dataclass(slots=True)
class Readings:
    """What was measured at one cost: block rows, and per process the sampled stacks of the measured loop.

    ``page_faults`` are the same at every cost.
    """

    rows: list[dict[str, int]] = field(default_factory=list)
    stacks: list[list[Stack]] = field(default_factory=list)
    page_faults: list[Touched] = field(default_factory=list)


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
    """Workers of one site, warmed up and waiting, each with its ns per call without a cost; ``folder`` has their logs."""

    site: Site
    folder: Path
    switch: Switch
    workers: Sequence[tuple[Worker, float]]
    meta: CaptureMeta

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
        """One block at one cost, of as many calls as the warm-up lets expect; the first may compile.

        Raises:
            MeasurementError: It has not as many calls as a whole number of events needs.
        """
        worker, call_ns = self.workers[process]
        expected = self.site.calls_per_block(call_ns, cost_ns)
        block_ns = round(expected * call_ns)
        pieces = {"piece_ns": max(1, block_ns // _PIECES)} if self.site.steady else {}
        self.switch.set(cost_ns)
        (row,) = worker.ask(TIME_BLOCKS, block_ns=block_ns, blocks=1, budget_ns=0, **pieces).rows
        if cost_ns and self.site.event_ns and row["calls"] != expected:
            raise MeasurementError(
                f"{self.site.name}: a block of {row['calls']} calls in place of {expected}; run it again"
            )
        return row

    def sample(self, processes: Sequence[int], cost_ns: int, count: int) -> list[list[Stack]]:
        """About ``count`` stacks of each process's loop at one cost: at once where as many cores are idle, else in turn."""
        cores: Sequence[int | None] = idle_cores()
        if self.site.threads or len(cores) < len(processes):
            cores = [None]
        together = min(len(cores), len(processes))
        groups = [processes[at : at + together] for at in range(0, len(processes), together)]
        return [stacks for group in groups for stacks in self._sample_at_once(group, cost_ns, count, cores)]

    def _sample_at_once(
        self, processes: Sequence[int], cost_ns: int, count: int, cores: Sequence[int | None]
    ) -> list[list[Stack]]:
        self.switch.set(cost_ns)
        samples = SampleStacks()
        measure_at_once(
            samples.sample(self.folder, self.workers[process][0], count, core, threads=self.site.threads)
            for process, core in zip(processes, cores, strict=False)
        )
        if samples.sampled.reason:
            raise MeasurementError(samples.sampled.reason)
        return [
            [each for stacks in stacks_per_process(folded.splitlines()) for each in stacks] for folded in samples.folded
        ]

    def measure_page_faults(self, process: int) -> Touched:
        """What they take beside the operating system's own time; budgets of calls without any make no use of it."""
        touched = self.workers[process][0].ask(MEASURE_PAGE_FAULTS)
        return Touched(touched.faults, touched.user_ns, process)


@contextmanager
def warmed_up(site: Site, processes: int) -> Iterator[Bench]:
    """Fresh workers of a site; they end with the block."""
    with tempfile.TemporaryDirectory(prefix="overhead_laboratory_") as name, ExitStack() as stack:
        folder = Path(name)
        switch = Switch(folder / "cell")
        request = request_of(site, switch, folder)
        workers = [
            stack.enter_context(Worker(f"clock-{number}", folder / f"{number}.log", request.timeout_s))
            for number in range(processes)
        ]
        workload, *_ = ask_all(workers, LOAD, **request.load_arguments())
        meta = CaptureMeta(subject=subject_of(workload), recorded_with=site.name)
        # One at a time: side by side they would find calls several times as long as they are.
        call_ns = [worker.ask(WARM_UP).call_ns for worker in workers]
        yield Bench(site, folder, switch, list(zip(workers, call_ns, strict=True)), meta)


def request_of(site: Site, switch: Switch, folder: Path) -> Request:
    """The request by which the workers of a site load it."""
    return Request(
        target=Target(site.name, LABORATORY / f"{site.file}.py", name=site.variant),
        params={"cell": str(switch.path)},
        compile_options={} if site.compiled else None,
        output=folder,
        timeout_s=_STEP_TIMEOUT_S,
    )


def plan_samples(call_ns: float, costs_ns: Sequence[int], seconds: float) -> dict[int, int]:
    """Stacks of each process without a cost (key 0) and at each of ``costs_ns``.

    A movement is the difference of two shares times their walls. Each side gets as many stacks as make the movement's standard
    error a third of what is tolerated, if the share is one half, but no more than ``seconds`` allow. What is sampled without a
    cost serves every cell, so there the limit is longer by the root of their number, which makes the cells' errors smallest for
    the time all take together.
    """
    counts = {cost_ns: _stacks(call_ns + cost_ns, cost_ns) for cost_ns in costs_ns}
    without = max((_stacks(call_ns, cost_ns) for cost_ns in costs_ns), default=0.0)
    limits = dict.fromkeys(costs_ns, seconds) | {0: seconds * math.sqrt(len(costs_ns))}
    return {
        cost_ns: _SAMPLES_PER_S * max(1, math.ceil(min(count / _SAMPLES_PER_S, limits[cost_ns]) / PROCESSES))
        for cost_ns, count in ({0: without} | counts).items()
    }


def of_turn(count: int, turn: int) -> int:
    """How many of ``count`` stacks are taken in one of the turns: whole seconds of the sampler, the first turns taking more."""
    seconds = count // _SAMPLES_PER_S
    return _SAMPLES_PER_S * (seconds // _TURNS + (turn < seconds % _TURNS))


def _stacks(wall_ns: float, cost_ns: int) -> float:
    """Stacks that make the standard error of half of ``wall_ns`` a third of what is tolerated, divided by the root of two."""
    tolerated_ns = max(TOLERATED_SHARE * cost_ns, TOLERATED_NS)
    return float(2 * (0.5 * wall_ns / (tolerated_ns / 3)) ** 2)


def measure(site: Site, costs_ns: Sequence[int], seconds: float) -> tuple[dict[int, Readings], CaptureMeta]:
    """Time and sample a site without a cost (key 0) and with each of ``costs_ns``; also what its worker reports of itself."""
    faults: list[Touched] = []
    readings = {cost_ns: Readings(page_faults=faults) for cost_ns in (0, *costs_ns)}
    with warmed_up(site, PROCESSES) as bench:
        counts = plan_samples(statistics.median(call_ns for _, call_ns in bench.workers), costs_ns, seconds)
        for first in range(0, PROCESSES, _AT_ONCE):
            group = range(first, min(first + _AT_ONCE, PROCESSES))
            before = [bench.time(process, list(readings), range(_ROUNDS // 2)) for process in group]
            stacks = _sample_in_turns(bench, group, counts, list(readings))
            after = [bench.time(process, list(readings), range(_ROUNDS // 2, _ROUNDS)) for process in group]
            for cost_ns, of_cost in readings.items():
                of_cost.stacks += stacks[cost_ns]
                of_cost.rows += [
                    row for halves in zip(before, after, strict=True) for half in halves for row in half[cost_ns]
                ]
            for process in group:
                faults.append(bench.measure_page_faults(process))
                bench.workers[process][0].end()
    return readings, bench.meta


def _sample_in_turns(
    bench: Bench, group: Sequence[int], counts: dict[int, int], costs_ns: Sequence[int]
) -> dict[int, list[list[Stack]]]:
    """Stacks of each process of a group, at each cost."""
    stacks: dict[int, list[list[Stack]]] = {cost_ns: [[] for _ in group] for cost_ns in costs_ns}
    for turn in range(_TURNS):
        for cost_ns in costs_ns:
            if count := of_turn(counts[cost_ns], turn):
                for process_stacks, sampled in zip(stacks[cost_ns], bench.sample(group, cost_ns, count), strict=True):
                    process_stacks.extend(sampled)
    return stacks
