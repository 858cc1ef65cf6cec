"""Runs of a program; durations in ns per step.

``overhead-lens/run/1`` is the closed budget of its steps, ``overhead-lens/ranks/1`` the runs of a job's ranks,
``overhead-lens/missed/1`` what a hot loop would have missed of a run, ``overhead-lens/steps/1`` the difference of two runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import field

from overhead_lens.budget.model import DeviceKernel, DeviceShare
from overhead_lens.contract import Ratio, ShareOfTime, TenthsInterval, Thousandths
from overhead_lens.documents import process
from overhead_lens.documents.breakdown import CrossCheck, cross_check
from overhead_lens.documents.common import Category, Document, Row, fill
from overhead_lens.documents.delta import CategoryDelta, WallDelta
from overhead_lens.studies.run.analysis import RunBudget, Sampling, Steps
from overhead_lens.studies.run.delta import RunDelta
from overhead_lens.studies.run.device import RunDevice
from overhead_lens.studies.run.job import RunJob
from overhead_lens.studies.run.missed import EndToEnd, Shortfall
from overhead_lens.studies.run.phases import PhaseTime
from overhead_lens.studies.run.slowest import Slow
from overhead_lens.traces.budgets import DeviceBudget, Kinds
from overhead_lens.traces.collectives.model import CollectiveCost
from overhead_lens.traces.findings.model import Finding
from overhead_lens.traces.launch_figures.model import DeviceLaunches


class Wall(Row, frozen=True):
    """Mean unprofiled wall time of a step, ns, with its interval over blocks of steps.

    ``interval`` says how ``ci95_ns`` was made: ``t over blocks``, or ``none`` for a single time, which ``ci95_ns`` repeats.
    """

    ns: float
    ci95_ns: TenthsInterval
    interval: Literal["t over blocks", "none"]


class Thread(process.Thread, frozen=True):
    """Another thread, or the thread of a child process, over the same time: ``host`` sums to ``wall_ns``.

    The thread was there for ``seen_share`` of it, from which ``host`` is scaled, and at work for ``busy_share`` of it.
    """


class Region(Row, frozen=True):
    """A region: ns each time it was entered; ``host`` is empty if no stack was taken inside."""

    name: str
    count: int
    wall: Wall
    host: list[Category]


class StepDevice(Row, frozen=True):
    """A device's own partition of the host's time: busy and idle sum to it, ``idle_blame`` to idle; counts are means.

    Launch latency in ns is from the start of the call to the start of its work. ``per_call`` in ``top`` is a mean as well.
    """

    device: str
    kind: str
    busy_ns: int
    idle_ns: int
    kinds: Kinds
    idle_blame: dict[str, int]
    events_per_call: Thousandths = field(name="events")
    launches_per_call: Thousandths = field(name="launches")
    graph_launches_per_call: Thousandths = field(name="graph_launches")
    launch_median_ns: int
    launch_p99_ns: int
    top: list[DeviceKernel]


class RegionDevices(Row, frozen=True):
    """The devices from entering a region to leaving it; ``count`` entries were traced."""

    name: str
    count: int
    devices: list[StepDevice]


class TracedStep(Row, frozen=True):
    """A traced step, as recorded."""

    step: int
    start_ns: int
    wall_ns: int
    devices: list[DeviceBudget] = field(name="device")


class Traced(Row, frozen=True):
    """The traced steps together, as recorded: what ``analyze`` says of ``kineto.json.gz`` about devices."""

    devices: list[DeviceBudget] = field(name="device")
    steps: list[TracedStep]
    collective_costs: list[CollectiveCost] = field(name="collectives")
    findings: list[Finding]
    launch_figures: list[DeviceLaunches]
    issues: dict[str, int]
    notes: list[str]


class Devices(Row, frozen=True):
    """The devices beside the host: ``devices`` per bare step, ``regions`` per bare entry.

    A traced step took ``step_ratio`` times as long as a bare one: busy time is that of the traced steps, idle time the rest.
    """

    steps: int
    step_ratio: Ratio
    devices: list[StepDevice]
    regions: list[RegionDevices]
    traced: Traced


class RunDocument(Document, frozen=True, kw_only=True):
    """Where the time of a program's steps goes. ``host`` is of the thread with the steps and sums to the wall.

    ``device`` is null if the traced steps show no device work.
    """

    schema: Literal["overhead-lens/run/1"] = "overhead-lens/run/1"
    command: list[str]
    exit_code: int
    per: Literal["step", "run"]
    steps: Steps
    wall: Wall
    host: list[Category]
    threads: list[Thread]
    device: Devices | None
    phases: list[PhaseTime]
    sampling: Sampling
    cross_checks: list[CrossCheck]
    regions: list[Region]
    slowest: list[Slow]
    warnings: list[str]
    environment: dict[str, Any]
    capture: str


def run_document(budget: RunBudget) -> RunDocument:
    """The document of a run."""
    checks = [cross_check(check) for check in budget.cross_checks]
    return fill(RunDocument, budget, device=_devices(budget.device), cross_checks=checks)


def _devices(run_device: RunDevice | None) -> Devices | None:
    if run_device is None:
        return None
    analysis = run_device.analysis
    steps = [fill(TracedStep, step.window, step=step.step, devices=step.devices) for step in analysis.steps]
    return fill(
        Devices,
        run_device,
        devices=_rows(run_device.devices),
        regions=[fill(RegionDevices, region, devices=_rows(region.devices)) for region in run_device.regions],
        traced=fill(Traced, analysis, steps=steps),
    )


def _rows(devices: Sequence[DeviceShare]) -> list[StepDevice]:
    return [fill(StepDevice, device, kinds=device) for device in devices]


class RanksDocument(Document, frozen=True, kw_only=True):
    """One run for each rank that completed, in order of rank."""

    schema: Literal["overhead-lens/ranks/1"] = "overhead-lens/ranks/1"
    ranks: list[RunDocument]
    capture: str


def ranks_document(job: RunJob) -> RanksDocument:
    """The document of a job."""
    return fill(RanksDocument, job, ranks=[run_document(run) for run in job.ranks])


class MissedDocument(Document, frozen=True, kw_only=True):
    """Figures of a run that a hot loop of its step lacks, the most time first, not to be added up."""

    schema: Literal["overhead-lens/missed/1"] = "overhead-lens/missed/1"
    run: RunDocument
    median_ns: int | None
    missed: list[Shortfall]
    sentence: str
    notes: list[str]


def missed_document(comparison: EndToEnd) -> MissedDocument:
    """The document of a run compared with a hot loop."""
    return fill(MissedDocument, comparison, run=run_document(comparison.run))


class StepsDocument(Document, frozen=True, kw_only=True):
    """The difference of two runs; the categories' ``delta_ns`` sum to the wall's."""

    schema: Literal["overhead-lens/steps/1"] = "overhead-lens/steps/1"
    per: Literal["step", "run"]
    base: RunDocument
    new: RunDocument
    verdict: str
    margin_share: ShareOfTime
    wall: WallDelta
    host: list[CategoryDelta]
    blame: list[str]
    sentence: str
    warnings: list[str]


def steps_document(delta: RunDelta) -> StepsDocument:
    """The document of a difference of two runs."""
    wall = WallDelta(delta.base.wall.ns, delta.new.wall.ns, delta.wall_delta_ns, delta.wall_ci95_ns, delta.ratio)
    return fill(StepsDocument, delta, wall=wall, base=run_document(delta.base), new=run_document(delta.new))
