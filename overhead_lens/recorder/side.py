"""One capture while it is recorded: starts its workers, gives its instruments turns, writes its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from overhead_lens.captures.directory import CAPTURE, write_meta
from overhead_lens.captures.model import HOT_CACHES, CaptureMeta, recorded
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import Recording, SideBySide, Turn, When, measure_at_once
from overhead_lens.machine.environment import describe_machine, git_commit
from overhead_lens.machine.operations import DESCRIBE_RUNTIME, LOAD, RECOMPILE, WARM_UP, Workload
from overhead_lens.machine.process import Process, Worker
from overhead_lens.machine.request import Order, Request
from overhead_lens.subject import Subject
from overhead_lens.units import format_bytes


@dataclass(slots=True)
class Side(Recording):
    """A recording and its workers: a profile's only side, or one of a comparison's two."""

    unsettled: list[str] = field(default_factory=list)
    compiled_once: bool = False

    def start(self, name: str, variables: Mapping[str, str] | None = None) -> Worker:
        """Start a worker."""
        request, log = self.request, self.folder / f"{name}.log"
        return Worker(name, log, request.timeout_s, request.python, {**request.variables, **(variables or {})})

    def send_load(self, worker: Process) -> None:
        """Make a worker load the workload."""
        worker.send(LOAD, **self.request.load_arguments())

    def note_load(self, worker: Process) -> None:
        """Wait until a worker has loaded; keep the first one's workload and runtime."""
        workload = worker.receive(LOAD)
        self.workload = self.workload or workload
        self.runtime = self.runtime or worker.ask(DESCRIBE_RUNTIME)

    def note_warm_up(self, worker: Process) -> None:
        """Wait until a worker has warmed up."""
        if not worker.receive(WARM_UP).settled:
            self.unsettled.append(worker.name)

    def recompile(self, worker: Process) -> None:
        """Make a worker compile its call again; not if eager, and not after a failure."""
        if not self.compiles or self.compiled_once:
            return
        try:
            worker.ask(RECOMPILE)
        except MeasurementError as error:
            self.compiled_once = True
            self.warnings.append(
                f"{worker.name} could not compile the call again, so no later process was asked to: {error}"
            )

    @property
    def all_warnings(self) -> list[str]:
        """Warnings for the report."""
        unsettled = f"{', '.join(self.unsettled)} had not settled after the warm-up: their blocks may still drift"
        notes = self.workload.notes if self.workload is not None else ()
        return [*notes, *([unsettled] if self.unsettled else []), *dict.fromkeys(self.warnings)]

    def give_turns(self, when: When, process: int = 0, worker: Process | None = None) -> None:
        """Run the instruments of ``when`` in a process, one after the other."""
        for instrument in self.instruments:
            if instrument.when is when:
                instrument.measure(Turn(self, process, worker))

    def measure_at_once(self, jobs: Sequence[tuple[When, Turn]], cores: Sequence[int | None]) -> None:
        """Run the instruments of each job's ``when`` in its process, all at the same time, on a core each."""
        measure_at_once(
            cast("SideBySide", instrument).stages(turn, core)
            for (when, turn), core in zip(jobs, cores, strict=False)
            for instrument in self.instruments
            if instrument.when is when
        )

    def write(self, started: datetime, recorded_with: str | None = None, folder: Path | None = None) -> Path:
        """Write all files, ``meta.json`` last, into the recording's directory or another; returns it."""
        request, workload = self.request, self.workload
        assert workload is not None
        folder = folder or self.folder
        size = request.displaced_bytes
        displaced = f"caches displaced by {format_bytes(size)}" if size else HOT_CACHES
        caches = {} if size is None else {"caches": displaced}
        notes = {instrument.name: instrument.write(folder) for instrument in self.instruments}
        meta = CaptureMeta(
            subject=subject_of(workload),
            summary=workload.summary,
            work=workload.work if workload.work_known else None,
            units=workload.work.units,
            **requested(request),
            has_arguments=request.has_arguments,
            instruments={name: msgspec.to_builtins(note) for name, note in notes.items() if note is not None},
            warnings=self.all_warnings,
            recorded_with=recorded_with,
            **provenance(request, {**self.runtime, **caches}, started),
        )
        write_meta(folder, CAPTURE, meta)
        return folder


def get_ready(workers: Sequence[tuple[Side, Process]], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Load and warm up the calls of all workers at the same time; ``meanwhile`` is done while they load."""
    for side, worker in workers:
        side.send_load(worker)
    meanwhile()
    for side, worker in workers:
        side.note_load(worker)
    for _, worker in workers:
        worker.send(WARM_UP)
    for side, worker in workers:
        side.note_warm_up(worker)


def subject_of(workload: Workload) -> Subject:
    """The subject of a worker's workload."""
    return Subject(
        workload.kind, workload.scenario, workload.variant, workload.params, workload.compiles, workload.device
    )


def requested(request: Request) -> dict[str, Any]:
    """The fields of ``meta.json`` that say what was requested."""
    return {
        "compile_options": request.compile_options,
        "target": request.target.text,
        "inputs": None if request.target.inputs is None else request.target.inputs.text,
        "assigned": dict(request.params),
        "effort": asdict(request.effort),
    }


def provenance(order: Order, runtime: Mapping[str, Any], started: datetime) -> dict[str, Any]:
    """The provenance fields of ``meta.json``; ``runtime`` is a worker's description of its software."""
    environment = {**describe_machine(), **runtime, "git_commit": git_commit(order.target.folder)}
    return recorded(environment, order.command, started)
