"""Records advice: the call as it is, all remedies beside it, the best ones again by themselves and together.

    base       a capture of the call as it is: which categories are worth a remedy
    screening  fresh processes that time the call as it is and with each remedy, in turns
    rounds     the same for remedies that need a process of their own: a process each, blocks in turns
    with-NAME  a short capture of each of the best, divided by the evidence that divides ``base``: which categories shrank
    together   the best that go together and the call as it is, recorded in turns as by ``compare``

A remedy that fails, hangs, kills its process or leaves it changed is tried in a process of its own or given up; the others go on
in a fresh one.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
from msgspec import Struct

from overhead_lens.budget.model import Breakdown
from overhead_lens.captures.directory import read_capture, recording_directory, write_meta
from overhead_lens.captures.files import ABLATION
from overhead_lens.captures.tables import write_table
from overhead_lens.errors import MeasurementError, OverheadLensError
from overhead_lens.instruments.ablation.record import RungTimes
from overhead_lens.instruments.calibration.record import Calibrate
from overhead_lens.instruments.clock.record import TIME_BLOCKS, Clock
from overhead_lens.instruments.page_faults.record import MeasurePageFaults
from overhead_lens.instruments.samples.record import SampleStacks
from overhead_lens.instruments.trace.record import RecordTrace
from overhead_lens.machine.cores import wait_until_idle
from overhead_lens.machine.operations import LOAD, WARM_UP, Operation
from overhead_lens.machine.process import Worker, ask_all, in_batches
from overhead_lens.machine.request import Effort, Listener, Remedies, Request
from overhead_lens.recorder.paired import layout, record_pair
from overhead_lens.recorder.side import provenance
from overhead_lens.recorder.single import record
from overhead_lens.stored import breakdown_of
from overhead_lens.studies.advise.analysis import TriedRemedy, go_together, not_worth_it, ranked, tried_remedies
from overhead_lens.studies.advise.stored import ADVICE, BASE, TOGETHER, AdviceMeta, Listed, Trial, Tried, folder_of
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.units import format_ns

BLOCK_NS = 10_000_000
_ROUNDS = 15
_SCREENING_NS = 8_000_000_000
_BASE_PROCESSES = 3
_OWN_ROUND = 1_000
_MOST_CAPTURES = 3
# What workers leave for each other.
_SHARED = "shared"

_BRIEF = Effort(processes=1, blocks=10, clock_budget_ns=300_000_000, samples_per_process=600)
_CONFIRMING = Effort(processes=6, blocks=48, clock_budget_ns=800_000_000, samples_per_process=900, sampled_every=3)


class Catalog(Struct, frozen=True):
    """All remedies, whether the call gives the same twice (``reason`` if that is unknown), whether its graph breaks.

    What is called after a break is compiled once for all compilers that Dynamo takes for the same, whatever their guard filters.
    """

    remedies: list[Listed]
    repeats: bool
    reason: str
    graph_breaks: bool


LIST = Operation("studies.advise.worker:list_remedies", Catalog)
PREPARE = Operation("studies.advise.worker:prepare_remedy", Trial)
CHECK = Operation("studies.advise.worker:check_remedy", Trial)
COMBINE = Operation("studies.advise.worker:combine_remedies", Trial)
TIME = Operation("studies.advise.worker:time_remedies", RungTimes)
COMPARE = Operation("studies.advise.worker:compare_outcome", Trial)


def record_advice(request: Request, file: Path | None, classifier: Classifier, listener: Listener) -> Path:
    """Try all remedies on a call; returns the directory.

    Args:
        request: The call; its effort is that of the capture of the call as it is, and its processes those of the screening.

    Raises:
        UsageError: The target, a parameter, the file or the output place is wrong.
        MeasurementError: The call could not be measured, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    label = f"advice-{request.target.label}"
    with recording_directory(request.output, request.parent, label) as folder:
        listener.begin(9 * request.effort.processes + 2 * _CONFIRMING.processes + 12)
        recording = _Recording(request, file, folder, classifier, _Part(listener))
        recording.run()
        write_meta(folder, ADVICE, recording.meta(started))
        return folder


@dataclass(frozen=True, slots=True)
class _Part:
    """The listener of a part of the recording, which does not begin again."""

    whole: Listener

    def begin(self, steps: int) -> None: ...

    def step(self, text: str) -> None:
        self.whole.step(text)


@dataclass(slots=True)
class _Recording:
    """Advice while it is recorded; ``trials`` by remedy, ``own`` are remedies that need a process of their own."""

    request: Request
    file: Path | None
    folder: Path
    classifier: Classifier
    listener: Listener
    catalog: Catalog | None = None
    trials: dict[str, Trial] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    captured: list[str] = field(default_factory=list)
    together: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Record all parts of the advice, one after the other."""
        self._shared_folder.mkdir()
        self._check_file()
        effort = replace(self.request.effort, processes=min(_BASE_PROCESSES, self.request.effort.processes))
        record(replace(self.request, output=self.folder / BASE, effort=effort), self.listener)
        base = breakdown_of(self.folder / BASE, self.classifier)
        self._screen(base)
        self._time_own()
        if self.rows:
            write_table(self.folder / ABLATION, self.rows)
        results = self._results()
        for each in [each for each in ranked(results) if each.helps][:_MOST_CAPTURES]:
            self._capture(each.remedy, base.evidence)
        # The clock of a pair takes the median block, which has nothing of what outlasts a call.
        listed = self._listed
        within_a_call = [each for each in results if not listed[each.remedy].own_process]
        self._confirm(go_together(within_a_call, {name: each.group for name, each in listed.items()}))
        shutil.rmtree(self._shared_folder)

    @property
    def _listed(self) -> Mapping[str, Listed]:
        return {} if self.catalog is None else {listed.name: listed for listed in self.catalog.remedies}

    @property
    def _shared_folder(self) -> Path:
        return self.folder.absolute() / _SHARED

    def _check_file(self) -> None:
        """A wrong file of remedies is refused before anything is measured."""
        if self.file is not None:
            with self._start("remedies") as worker:
                self._load([worker])

    # ------------------------------------------------------------------ in one process

    def _screen(self, base: Breakdown) -> None:
        """Time what can share a process, in fresh processes."""
        with self._first_worker(base) as first:
            self._time_in(first, 0)
        for batch in in_batches(range(1, self.request.effort.processes)):
            with ExitStack() as stack:
                self.listener.step(f"compiling the remedies: {len(batch)} processes")
                workers = [stack.enter_context(self._start(f"screen-{number}")) for number in batch]
                ready = self._ready(workers)
                for number, worker in zip(batch, workers, strict=True):
                    if worker in ready:
                        self._time_in(worker, number)

    def _first_worker(self, base: Breakdown) -> Worker:
        """A worker in which every remedy has been called that can share a process; what kills one is found here."""
        skipped: set[str] = set()
        while True:
            worker = self._start("screen-0")
            try:
                self._load([worker])
                if self._choose(worker, base) and self._prepare_all(worker, skipped):
                    return worker
            except BaseException:
                worker.end()
                raise
            worker.end()

    def _choose(self, worker: Worker, base: Breakdown) -> bool:
        """Drop useless remedies and separate those that need their own process; False if a remedy has ended this process."""
        catalog = self.catalog
        assert catalog is not None
        for listed in catalog.remedies:
            if listed.name in self.trials:
                continue
            reason = not_worth_it(listed.shrinks, base)
            if reason:
                self.trials[listed.name] = Trial("not_applicable", reason)
            elif listed.variables or listed.own_process or catalog.graph_breaks:
                try:
                    self.trials[listed.name] = worker.ask(CHECK, name=listed.name)
                except MeasurementError as error:
                    self.trials[listed.name] = Trial("failed", str(error))
                    return False
                self.own += [] if self._is_out(listed.name) else [listed.name]
        return True

    def _prepare_all(self, worker: Worker, skipped: set[str]) -> bool:
        """Call every remedy once; False if one has spoiled the process, which is then not used again."""
        for name in self._listed:
            if name in self.own or name in skipped or self._is_out(name):
                continue
            self.listener.step(f"trying {name}")
            try:
                trial = worker.ask(PREPARE, name=name)
            except MeasurementError as error:
                self.trials[name] = Trial("failed", str(error))
                skipped.add(name)
                return False
            self.trials[name] = trial
            if trial.leaks:
                skipped.add(name)
                if trial.status == "measured":
                    self.own.append(name)
                return False
        return True

    def _is_out(self, name: str) -> bool:
        return name in self.trials and self.trials[name].status != "measured"

    def _shared(self) -> list[str]:
        return [name for name in self._listed if name not in self.own and not self._is_out(name)]

    def _ready(self, workers: Sequence[Worker]) -> list[Worker]:
        """The workers in which all shared remedies have been called."""
        try:
            self._load(workers)
            for name in self._shared():
                for trial in ask_all(workers, PREPARE, name=name):
                    if trial.status != "measured":
                        self.trials[name] = trial
        except MeasurementError as error:
            self.warnings.append(f"{len(workers)} of the processes that try remedies were lost: {error}")
            return []
        return list(workers)

    def _time_in(self, worker: Worker, number: int) -> None:
        self.listener.step(f"timing {len(self._shared())} remedies: {worker.name}{self._best()}")
        try:
            timed = worker.ask(TIME, block_ns=BLOCK_NS, rounds=_ROUNDS, budget_ns=_SCREENING_NS, seed=number)
        except MeasurementError as error:
            self.warnings.append(f"savings are of one process fewer: {error}")
            return
        self.rows += [{"process": number, "collected_ns": 0, **row} for row in timed.rows]
        for name, reason in timed.reasons.items():
            if reason is not None and name in self.trials:
                self.trials[name] = Trial("failed", reason)

    def _load(self, workers: Sequence[Worker]) -> None:
        ask_all(workers, LOAD, **self.request.load_arguments())
        file = None if self.file is None else str(self.file.absolute())
        self.catalog = ask_all(workers, LIST, file=file, folder=str(self._shared_folder))[0]

    def _start(self, name: str) -> Worker:
        request, log = self.request, self.folder / f"{name}.log"
        return Worker(name, log, request.timeout_s, request.python, dict(request.variables))

    # ------------------------------------------------------------------ a process each

    def _time_own(self) -> None:
        """Time the remedies that need their own process, in turns with a process of the unchanged call."""
        for number in range(self.request.effort.processes):
            names = [name for name in self.own if not self._is_out(name)]
            for batch, few in enumerate(in_batches(names)):
                self.listener.step(f"timing {', '.join(few)} in processes of their own: round {number}{self._best()}")
                with ExitStack() as stack:
                    workers = self._own_workers(stack, number, few)
                    self._time_round(_OWN_ROUND * (batch + 1) + number, workers)

    def _own_workers(self, stack: ExitStack, number: int, names: Sequence[str]) -> dict[str, Worker]:
        """A warmed-up worker for the call as it is and for each remedy, by name; they get ready side by side."""
        workers: dict[str, Worker] = {}
        for name in (BASE, *names):
            request = self.request if name == BASE else self._with((name,))
            variables = {**request.variables, **layout(number)}
            log = self.folder / f"own-{name}-{number}.log"
            worker = stack.enter_context(Worker(f"{name}-{number}", log, request.timeout_s, request.python, variables))
            worker.send(LOAD, **request.load_arguments())
            workers[name] = worker
        for name, worker in workers.items():
            with self._giving_up(name):
                worker.receive(LOAD)
                if name != BASE and number == 0:
                    self.trials[name] = worker.ask(COMPARE, folder=str(self._shared_folder))
                worker.send(WARM_UP)
        for name, worker in workers.items():
            if not self._is_out(name):
                with self._giving_up(name):
                    worker.receive(WARM_UP)
        return {name: worker for name, worker in workers.items() if not self._is_out(name)}

    @contextmanager
    def _giving_up(self, name: str) -> Iterator[None]:
        """Note that a remedy failed; without the call as it is there is nothing to compare others with."""
        try:
            yield
        except OverheadLensError as error:
            if name == BASE:
                raise
            self.trials[name] = Trial("failed", str(error))

    def _time_round(self, number: int, workers: Mapping[str, Worker]) -> None:
        draw = random.Random(number)  # noqa: S311 (an order, no secret)
        alive, threads = dict(workers), False
        for block in range(_ROUNDS):
            for name in draw.sample(list(alive), len(alive)):
                if threads:
                    wait_until_idle(list(alive.values()))
                with self._giving_up(name):
                    timed = alive[name].ask(TIME_BLOCKS, block_ns=BLOCK_NS, blocks=1, budget_ns=0, collections=True)
                    threads = timed.use_threads
                    row = timed.rows[0]
                    figures = {key: row[key] for key in ("calls", "collected_ns", "reference_ns", "minor_faults")}
                    wall_ns = row["wall_ns"] - row["delayed_ns"]
                    self.rows.append({"process": number, "rung": name, "block": block, "wall_ns": wall_ns, **figures})
                if self._is_out(name):
                    del alive[name]

    # ------------------------------------------------------------------ the best

    def _results(self) -> list[TriedRemedy]:
        return tried_remedies(self._tried(), pd.DataFrame(self.rows)) if self.rows else []

    def _best(self) -> str:
        measured = [each for each in self._results() if each.wall is not None]
        best = min(measured, key=lambda each: each.wall.delta_ns if each.wall else 0.0, default=None)
        if best is None or best.wall is None or best.wall.delta_ns >= 0:
            return ""
        return f" (best so far: {best.remedy}, {format_ns(-best.wall.delta_ns)} less)"

    def _capture(self, name: str, evidence: str) -> None:
        """A short capture of the call with a remedy, divided by this evidence."""
        self.listener.step(f"where {name} saves")
        request = replace(self._with((name,)), output=folder_of(self.folder, name), effort=_BRIEF)
        dividing = (RecordTrace, Calibrate) if evidence == "trace" else (SampleStacks,)
        try:
            record(request, self.listener, instruments=(Clock, MeasurePageFaults, *dividing))
        except OverheadLensError as error:
            self.warnings.append(f"no categories of {name}: {error}")
            return
        self.captured.append(name)

    def _confirm(self, names: list[str]) -> None:
        """Record the call as it is and with remedies in turns."""
        try:
            if len(names) > 1:
                with self._start("fitting") as worker:
                    self._load([worker])
                    names = self._fitting(worker, names)
            if not names:
                return
            base = replace(self.request, effort=_CONFIRMING)
            new = replace(self._with(names), effort=_CONFIRMING)
            record_pair(base, new, self.folder / TOGETHER, self.listener)
        except OverheadLensError as error:
            self.warnings.append(f"{' and '.join(names)} could not be measured together: {error}")
            return
        self.together = names

    def _fitting(self, worker: Worker, names: Sequence[str]) -> list[str]:
        """Remedies of which none undoes another and that give the same output together, the earlier ones first."""
        chosen = list(names[:1])
        for name in names[1:]:
            self.listener.step(f"trying {' + '.join([*chosen, name])}")
            trial = worker.ask(COMBINE, names=[*chosen, name])
            if trial.status == "measured" and trial.output != "differs":
                chosen.append(name)
        return chosen

    def _with(self, names: Sequence[str]) -> Request:
        variables = {key: value for name in names for key, value in self._listed[name].variables.items()}
        return replace(
            self.request,
            variables={**self.request.variables, **variables},
            remedies=Remedies(names=tuple(names), file=self.file, folder=self._shared_folder),
        )

    # ------------------------------------------------------------------ what is stored

    def _tried(self) -> list[Tried]:
        return [
            Tried(listed, self.trials.get(name, Trial("failed", "it was not tried")))
            for name, listed in self._listed.items()
        ]

    def meta(self, started: datetime) -> AdviceMeta:
        """``meta.json``."""
        base, catalog = read_capture(self.folder / BASE).meta, self.catalog
        assert catalog is not None
        return AdviceMeta(
            subject=base.subject,
            tried=self._tried(),
            repeats=catalog.repeats,
            unknown=catalog.reason,
            captured=self.captured,
            together=self.together,
            warnings=self.warnings,
            **provenance(self.request, base.environment, started),
        )
