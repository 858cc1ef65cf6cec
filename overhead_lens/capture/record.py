"""The recorder: starts fresh workers, lets one at a time measure while all others are blocked, and writes the capture.

Workers are warmed up side by side, as many as there are cores, and are ended before the next ones start, so that only a
few copies of the inputs are in memory at once and the clock's processes are spread over the recording::

    core 1   tracer:  warm up | traced |       |         | clock 1: warm up | timed | sampled |       | ...
    core 2   clock 0: warm up |        | timed | sampled | clock 2: warm up |       |         | timed | ...

A clock process is sampled once its blocks are timed, and ended then: what the sampler does to it touches no timing, and the
shares of the call come from as many processes as its wall time, since address layout makes processes differ in both.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from overhead_lens import __version__
from overhead_lens.capture import calibration_store, directory, page_faults
from overhead_lens.capture.environment import describe_machine, git_commit
from overhead_lens.capture.instructions import calls_of, count_instructions
from overhead_lens.capture.process import Worker, in_batches
from overhead_lens.capture.sampler import Sampling
from overhead_lens.errors import MeasurementError

BLOCK_NS = 20_000_000

# The flags of the trace that numbers come from: none.
PLAIN = "plain"

# A call that has other threads run for this much of its time does not run on one thread.
_OTHERS_SHARE = 0.1

# What a compiled call's checks leave out.
CHECK_RUNGS = ("compiled", "guards_filtered", "generated_code", "allocation_hoisted", "kernel_binding")
RUNG_BLOCK_NS = 5_000_000


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured; more effort, narrower intervals.

    Attributes:
        processes: Timed ones, of each side of a comparison.
        blocks: Of each process, as long as its ``clock_budget_ns`` last.
        samples_per_process: Stacks of each sampled process; half as many where two sides cannot be sampled at once.
        sampled_every: Of so many timed processes one is sampled, the first of them.
    """

    processes: int = 5
    blocks: int = 25
    clock_budget_ns: int = 1_500_000_000
    samples_per_process: int = 600
    sampled_every: int = 1


STANDARD = Effort()
QUICK = Effort(processes=3, blocks=15, clock_budget_ns=600_000_000, samples_per_process=500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What every recording is told.

    Attributes:
        path: Scenario file.
        params: Parameter name to text.
        compile_options: Keyword arguments of torch.compile; None for eager.
        output: Directory the user named; None for a new one under ``parent``.
        parent: Where new captures go.
        timeout_s: Limit for one step of one worker.
        command: The command line that asked for it.
    """

    path: Path
    params: Mapping[str, str]
    compile_options: Mapping[str, Any] | None
    output: Path | None
    parent: Path
    timeout_s: float
    effort: Effort = STANDARD
    command: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Order):
    """What to record of one call.

    Attributes:
        variant: Variant name, None for the default.
        target: The scenario as the user named it, for recording the same again.
        instructions: Whether instructions are counted too.
        counted_calls: Calls to count the instructions of; None for as many as their time allows.
        python: Interpreter of the workers.
    """

    variant: str | None
    target: str = ""
    instructions: bool = False
    counted_calls: int | None = None
    python: str = sys.executable


def uses_threads(timed: Mapping[str, Any]) -> bool:
    """Whether other threads of a worker ran while its blocks, its reply to ``clock``, were timed."""
    wall_ns = sum(row["wall_ns"] for row in timed["rows"])
    return bool(timed["others_ns"] > _OTHERS_SHARE * wall_ns)


def load_arguments(request: Request) -> dict[str, Any]:
    """What a worker is told to load."""
    options = request.compile_options
    return {
        "path": str(request.path),
        "variant": request.variant,
        "params": dict(request.params),
        "compile_options": None if options is None else dict(options),
    }


def provenance(order: Order, runtime: Mapping[str, Any], started: datetime) -> dict[str, Any]:
    """Where ``meta.json`` says its figures come from; ``runtime`` is what a worker says of its interpreter."""
    return {
        "version": __version__,
        "environment": {**describe_machine(), **runtime, "git_commit": git_commit(order.path.parent)},
        "command": shlex.join(order.command),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(timezone.utc) - started).total_seconds(), 1),
    }


class Listener(Protocol):
    """Is told how far the recording has come."""

    def begin(self, steps: int) -> None:
        """``steps`` steps will follow."""

    def step(self, text: str) -> None:
        """The next step, in words."""


def record(request: Request, listener: Listener) -> Path:
    """Record one capture and return its directory.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: The clock could not be read, or nothing can be written.
    """
    started = datetime.now(timezone.utc)
    label = "-".join(
        filter(None, [request.path.stem, request.variant, "compile" if request.compile_options is not None else ""])
    )
    with directory.recording_directory(request.output, request.parent, label) as folder, ExitStack() as stack:
        recording = Recording(request, listener, folder)
        stack.callback(recording.end_workers)
        try:
            return recording.run(started)
        except OSError as error:
            raise MeasurementError(directory.cannot_write(folder, error)) from error


@dataclass(slots=True)
class Recording:
    """The state of one recording while it goes on."""

    request: Request
    listener: Listener
    folder: Path
    about: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, int]] = field(default_factory=list)
    samples: dict[str, Any] = field(default_factory=lambda: {"samples": 0, "errors": 0, "reason": None})
    folded: list[str] = field(default_factory=list)
    page_faults: list[dict[str, int]] = field(default_factory=list)
    traced: dict[str, Any] = field(default_factory=dict)
    guards: dict[str, Any] | None = None
    calibration: dict[str, Any] | None = None
    ablation: list[dict[str, Any]] = field(default_factory=list)
    not_ablated: dict[str, str] = field(default_factory=dict)
    peaks: dict[str, Any] = field(default_factory=dict)
    instructions: dict[str, Any] | None = None
    runtime: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unsettled: list[str] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    compiled_once: bool = False

    def run(self, started: datetime) -> Path:
        """All steps, in order; see the module's drawing."""
        jobs = [self.trace, *[self.clock] * self.request.effort.processes]
        batches = in_batches(jobs)
        self.listener.begin(len(jobs) + len(batches) + 1 + self.request.instructions)
        names = iter(["tracer", *[f"clock-{number}" for number in range(self.request.effort.processes)]])
        for batch in batches:
            with self._warmed_up([next(names) for _ in batch]) as workers:
                for job, worker in zip(batch, workers, strict=True):
                    self.listener.step(f"measuring: {worker.name}")
                    job(worker)
        if self.request.instructions:
            self.listener.step("counting instructions")
            self._count_instructions()
        self.listener.step("writing the capture")
        return self.write(started)

    def start(self, name: str, variables: Mapping[str, str] | None = None) -> Worker:
        """Start a worker of this side."""
        request = self.request
        return Worker(name, self.folder / f"{name}.log", request.timeout_s, request.python, variables)

    def end_workers(self) -> None:
        """Kill whatever still runs."""
        while self.workers:
            self.workers.pop().end()

    @contextmanager
    def _warmed_up(self, names: Sequence[str]) -> Iterator[list[Worker]]:
        """Workers that are loaded, compiled and settled, all blocked on their next request."""
        self.listener.step(f"warming up: {', '.join(names)}")
        self.workers = [self.start(name) for name in names]
        for worker in self.workers:
            self.send_load(worker)
        for worker in self.workers:
            self.note_load(worker)
        for worker in self.workers:
            worker.send("warm_up")
        for worker in self.workers:
            self.note_warm_up(worker)
        yield self.workers
        self.end_workers()

    def send_load(self, worker: Worker) -> None:
        """Have a worker load the workload."""
        worker.send("load", **load_arguments(self.request))

    def note_load(self, worker: Worker) -> None:
        """Wait until a worker has loaded, and keep what the first one says of the workload and of its interpreter."""
        found = worker.receive("load")
        self.about = self.about or found
        self.runtime = self.runtime or worker.ask("environment")

    def note_warm_up(self, worker: Worker) -> None:
        """Wait until a worker has warmed up."""
        if not worker.receive("warm_up")["settled"]:
            self.unsettled.append(worker.name)

    def _unsettled_warning(self) -> list[str]:
        named = f"{', '.join(self.unsettled)} had not settled after the warm-up: their blocks may still drift"
        return [named] if self.unsettled else []

    def recompile(self, worker: Worker) -> None:
        """Have a worker compile its call once more; eager ones have nothing to compile, and after a failure none is asked."""
        if self.request.compile_options is None or self.compiled_once:
            return
        try:
            worker.ask("recompile")
        except MeasurementError as error:
            self.compiled_once = True
            self.warnings.append(
                f"{worker.name} could not compile the call once more, and none after it was asked to: {error}"
            )

    def start_sampling(
        self, stack: ExitStack, worker: Worker, count: int, core: int | None = None, *, threads: bool
    ) -> Sampling | None:
        """Attach the sampler to a worker, until ``stack`` ends; after a refusal no other process is tried."""
        if self.samples.get("reason"):
            return None
        spinning = worker.ask("spin", chunk_ns=BLOCK_NS, tracer_pid=os.getpid())
        stack.callback(worker.stop_spinning)
        try:
            return stack.enter_context(
                Sampling(spinning["pid"], count, self.folder, worker.name, core, threads=threads)
            )
        except MeasurementError as error:
            self.samples["reason"] = str(error)
            return None

    def keep_stacks(self, sampling: Sampling | None) -> None:
        """Wait for a sampler's stacks."""
        if sampling is None:
            return
        try:
            run = sampling.finish()
        except MeasurementError as error:
            self.samples["reason"] = str(error)
            return
        self.folded.append(run.folded)
        self.samples["samples"] += run.sample_count
        self.samples["errors"] += run.error_count

    def trace(self, worker: Worker) -> None:
        """Trace and guards."""
        if self.request.compile_options is not None:
            self.guards = worker.ask("guards")
        try:
            self.traced = {**worker.ask("trace", folder=str(self.folder)), "reason": None}
        except MeasurementError as error:
            self.traced = {"reason": str(error)}
            self.warnings.append(f"no trace: {error}")
            return
        self._calibrate(worker)

    def _calibrate(self, worker: Worker) -> None:
        """The cost of the trace's events, kept from before; while only a few processes were measured, this one is too."""
        compiled = self.request.compile_options is not None
        name = calibration_store.key(describe_machine(), self.runtime)
        kept = calibration_store.load(name)
        self.calibration = kept
        if calibration_store.processes(kept, PLAIN, compiled=compiled) >= calibration_store.PROCESSES:
            return
        try:
            found = worker.ask("calibrate", flags=[PLAIN], compiled=compiled)
        except MeasurementError as error:
            self.warnings.append(f"the cost of recording is not calibrated: {error}")
            return
        self.calibration = calibration_store.joined(kept, found)
        calibration_store.save(name, self.calibration)

    def clock(self, worker: Worker) -> None:
        """Time a process's blocks, then sample it."""
        effort = self.request.effort
        process = len({row["process"] for row in self.rows})
        timed = worker.ask("clock", block_ns=BLOCK_NS, blocks=effort.blocks, budget_ns=effort.clock_budget_ns)
        self.rows += [{"process": process, **row} for row in timed["rows"]]
        if process % effort.sampled_every == 0:
            with ExitStack() as stack:
                threads = uses_threads(timed)
                self.keep_stacks(self.start_sampling(stack, worker, effort.samples_per_process, threads=threads))
        self.measure_page_faults(worker, process)
        if self.request.compile_options is not None:
            self._ablate(worker, process)
        if process == effort.processes - 1:
            self.measure_peaks(worker)

    def measure_page_faults(self, worker: Worker, process: int) -> None:
        """What they take beside the operating system's own time, in a process whose timed blocks had many."""
        rows = [row for row in self.rows if row["process"] == process]
        if page_faults.matter(sum(row["minor_faults"] for row in rows), sum(row["wall_ns"] for row in rows)):
            self.page_faults.append({"process": process, **worker.ask("page_faults")})

    def measure_peaks(self, worker: Worker) -> None:
        """What the machine can do."""
        if self.calibration is not None and self.calibration.get("peaks"):
            self.peaks = self.calibration["peaks"]
            return
        try:
            self.peaks = worker.ask("peaks")
        except MeasurementError as error:
            self.warnings.append(f"no roofline floor: {error}")

    def _count_instructions(self) -> None:
        """Callgrind's counts; without them the budget says why and is whole otherwise."""
        if str(self.about["params"].get("device", "cpu")) != "cpu":
            self.instructions = {"calls": 1, "reason": "a call that gives work to a device is not counted"}
            return
        request = self.request
        calls = request.counted_calls or calls_of(min(row["wall_ns"] / row["calls"] for row in self.rows))
        self.instructions = count_instructions(load_arguments(request), calls, self.folder, request.timeout_s)

    def _ablate(self, worker: Worker, process: int) -> None:
        """Time the call with one thing after another left out, for the budget's checks."""
        try:
            worker.ask("build_rungs", names=list(CHECK_RUNGS))
            found = worker.ask("time_rungs", block_ns=RUNG_BLOCK_NS, rounds=15, budget_ns=1_000_000_000, seed=process)
        except MeasurementError as error:
            self.warnings.append(f"no ablation: {error}")
            return
        self.ablation += [{"process": process, **row} for row in found["rows"]]
        if process == 0:
            self.not_ablated = {name: reason for name, reason in found["reasons"].items() if reason}

    def write(self, started: datetime, **more: Any) -> Path:
        """Write all files, ``meta.json`` with the fields ``more`` last."""
        request = self.request
        directory.write_clock(self.folder, self.rows)
        if self.calibration is not None:
            directory.write_calibration(self.folder, self.calibration)
        if self.ablation:
            directory.write_ablation(self.folder, self.ablation)
        if self.folded:
            directory.write_stacks(self.folder, self.folded)
        meta = {
            **self.about,
            "compile": request.compile_options is not None,
            "compile_options": request.compile_options,
            "target": request.target,
            "assigned": dict(request.params),
            "device": str(self.about["params"].get("device", "cpu")),
            "published": [each for each in self.about["published"] if self._fits(each)],
            "effort": asdict(request.effort),
            "block_ns": BLOCK_NS,
            "samples": self.samples,
            "page_faults": self.page_faults,
            "trace": self.traced,
            "guards": self.guards,
            "not_ablated": self.not_ablated,
            "peaks": self.peaks,
            "instructions": self.instructions,
            "warnings": [*self._unsettled_warning(), *self.warnings],
            **provenance(request, self.runtime, started),
            **more,
        }
        directory.write_meta(self.folder, meta)
        return self.folder

    def _fits(self, published: Mapping[str, Any]) -> bool:
        """Whether a reference figure is of this variant, mode and size."""
        params = self.about["params"]
        wanted = {**self.about["default_params"], **published["params"]}
        same_mode = published["compile"] == (self.request.compile_options is not None)
        same_variant = published["variant"] == self.about["variant"]
        # A figure of a rung that no parameter makes belongs to the ladder.
        plain = published["rung"] in ("", "eager", "compiled") or published["params"]
        return bool(same_mode and same_variant and plain and params == wanted)
