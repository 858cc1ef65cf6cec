"""``overhead-lens/breakdown/2``: the closed budget of one call; durations in ns per call."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from overhead_lens.budget import model
from overhead_lens.contract import Tenths, TenthsInterval, Thousandths
from overhead_lens.documents.common import Category, Document, Interval, Row, fill
from overhead_lens.subject import Subject

# Functions of a category in instructions; a compiled call has hundreds.
_TOP = 8


class Wall(Row, frozen=True):
    """Unprofiled wall time of a call, ns; ``floor_ns`` is 0 and ``floor`` null if the work is not known.

    ``interval`` says how ``ci95_ns`` was made: ``bootstrap over processes``, ``bootstrap over blocks`` of a single process, or
    ``range of N processes``, which are too few for an interval of 95 %.
    """

    ns: float
    ci95_ns: TenthsInterval
    interval: str
    processes: int
    blocks: int
    calls: int
    floor_ns: Thousandths
    floor: model.Floor | None


class Kinds(Row, frozen=True):
    """Device time per kind of work, ns per call; ``overlap_ns``: communication and compute together."""

    compute_ns: int
    communication_ns: int
    copy_ns: int
    overlap_ns: int


class Launch(Row, frozen=True):
    """Launches per call, and their latency in ns: from the start of the call to the start of its work."""

    launches_per_call: Thousandths = field(name="per_call")
    launch_median_ns: int = field(name="median_ns")
    launch_p99_ns: int = field(name="p99_ns")
    graph_launches_per_call: Thousandths


class Device(Row, frozen=True):
    """The device's own partition of the same call: busy and idle, ns per call; ``idle_blame`` sums to idle."""

    device: str
    kind: str
    evidence: str
    busy_ns: int
    idle_ns: int
    kinds: Kinds
    idle_blame: dict[str, int]
    events_per_call: Thousandths
    launch: Launch
    top: list[model.DeviceKernel]


class CrossCheck(Row, frozen=True):
    """A category as independent instruments see it, ns per call; null if one is blind to it.

    ``ablation_bound`` is ``upper`` or ``lower`` where ablation gives a bound of the category, null if it gives the category.
    """

    category: str
    samples_ns: Tenths | None
    trace_ns: Tenths | None
    ablation_ns: Tenths | None
    agree: bool
    ablation_bound: str | None
    samples_ci95_ns: TenthsInterval | None
    trace_ci95_ns: TenthsInterval | None
    ablation_ci95_ns: TenthsInterval | None


class CountCategory(Row, frozen=True):
    """A category in instructions per call."""

    category: str
    count: int
    parts: list[model.InstructionPart]
    top: list[model.InstructionFrame]


class Instructions(Row, frozen=True):
    """The same call in instructions: ``count`` per call, ``counted`` in all ``calls``."""

    count: int
    counted: int
    calls: int
    host: list[CountCategory]


class Guard(Row, frozen=True):
    """A guard, ns: checked in a loop (``warm_ns``), after a flush of the caches (``cold_ns``), its share of the call."""

    guard: str
    warm_ns: Tenths | None
    warm_ci95_ns: TenthsInterval | None
    cold_ns: Tenths | None
    sampled_ns: Tenths | None
    cause: str | None


class BreakdownDocument(Document, frozen=True, kw_only=True):
    """Where every nanosecond of one call goes. ``host`` lists every category, zeros included, and sums to the wall."""

    schema: Literal["overhead-lens/breakdown/2"] = "overhead-lens/breakdown/2"
    subject: Subject
    per: Literal["call"] = "call"
    unit: Literal["ns"] = "ns"
    wall: Wall
    host: list[Category]
    device: Device | None
    closure: model.Closure
    cross_checks: list[CrossCheck]
    instructions: Instructions | None
    guards: list[Guard]
    guard_tree: model.GuardTree | None
    guard_groups: list[model.GuardGroup]
    compile_notes: list[model.CompileNote]
    warnings: list[str]
    environment: dict[str, Any]
    capture: str


def breakdown_document(breakdown: model.Breakdown) -> BreakdownDocument:
    """The document of a budget."""
    device = breakdown.device
    return fill(
        BreakdownDocument,
        breakdown,
        device=device and fill(Device, device, evidence="trace", kinds=device, launch=device),
        cross_checks=[cross_check(check) for check in breakdown.cross_checks],
        instructions=None if breakdown.instructions is None else _instructions(breakdown.instructions),
    )


def cross_check(check: model.CrossCheck) -> CrossCheck:
    """The row of a check."""
    readings: dict[str, float | Interval | None] = {}
    for name, reading in (("samples", check.samples), ("trace", check.trace), ("ablation", check.ablation)):
        readings[f"{name}_ns"] = reading.ns if reading else None
        readings[f"{name}_ci95_ns"] = reading.ci95_ns if reading else None
    return fill(CrossCheck, check, ablation_bound=check.bound, **readings)


def _instructions(budget: model.InstructionBudget) -> Instructions:
    host = [fill(CountCategory, category, top=category.frames[:_TOP]) for category in budget.host]
    return fill(Instructions, budget, host=host)
