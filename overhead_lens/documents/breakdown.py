"""``overhead-lens/breakdown/2``: the closed budget of one call; durations in ns per call."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from overhead_lens.budget import model
from overhead_lens.documents.common import (
    Category,
    CountFrame,
    CountPart,
    Document,
    Frame,
    Interval,
    Part,
    json_subject,
    rounded,
    tenths,
)
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.host import HostCategory

# Functions of a category in instructions; a compiled call has hundreds.
_TOP = 8


class Floor(Struct, frozen=True, forbid_unknown_fields=True):
    """The least that the work takes at the machine's peaks: ns per call, what binds it and in which memory level."""

    ns: float
    bound: str
    level: str
    flops_per_s: float
    bytes_per_s: float


class Wall(Struct, frozen=True, forbid_unknown_fields=True):
    """Unprofiled wall time of a call, ns; ``floor_ns`` is 0 and ``floor`` null where the work is not known."""

    ns: float
    ci95_ns: Interval
    processes: int
    blocks: int
    calls: int
    floor_ns: float
    floor: Floor | None


class Kinds(Struct, frozen=True, forbid_unknown_fields=True):
    """Device time per kind of work, ns per call; ``overlap_ns``: communication and compute together."""

    compute_ns: int
    communication_ns: int
    copy_ns: int
    overlap_ns: int


class Launch(Struct, frozen=True, forbid_unknown_fields=True):
    """Launches per call, and from the start of the launching call to the start of its work on the device, ns."""

    per_call: float
    median_ns: int
    p99_ns: int
    graph_launches_per_call: float


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """A kernel or copy by name: events and ns per call."""

    name: str
    kind: str
    per_call: float
    ns: int


class Device(Struct, frozen=True, forbid_unknown_fields=True):
    """The device's own partition of the same call: busy and idle, ns per call; ``idle_blame`` sums to idle."""

    device: str
    kind: str
    evidence: str
    busy_ns: int
    idle_ns: int
    kinds: Kinds
    idle_blame: dict[str, int]
    events_per_call: float
    launch: Launch
    top: list[Kernel]


class Closure(Struct, frozen=True, forbid_unknown_fields=True):
    """How the evidence adds up, ns per call; ``trace_bare_ns`` is the bare call in the traced process."""

    sum_ns: float
    residual_ns: float
    trace_sum_ns: float | None
    trace_residual_share: float | None
    trace_bare_ns: float | None


class CrossCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """A category as independent instruments see it, ns per call; null where one is blind to it.

    ``ablation_bound`` is ``upper`` or ``lower`` where ablation gives a bound of the category, null where it gives the category.
    """

    category: str
    samples_ns: float | None
    trace_ns: float | None
    ablation_ns: float | None
    agree: bool
    ablation_bound: str | None
    samples_ci95_ns: Interval | None
    trace_ci95_ns: Interval | None
    ablation_ci95_ns: Interval | None


class CountCategory(Struct, frozen=True, forbid_unknown_fields=True):
    """A category in instructions per call."""

    category: str
    count: int
    parts: list[CountPart]
    top: list[CountFrame]


class Instructions(Struct, frozen=True, forbid_unknown_fields=True):
    """The same call in instructions: ``count`` per call, ``counted`` in all ``calls``."""

    count: int
    counted: int
    calls: int
    host: list[CountCategory]


class Guard(Struct, frozen=True, forbid_unknown_fields=True):
    """A guard, ns: checked in a loop (``warm_ns``), after a flush of the caches (``cold_ns``), its share of the call."""

    guard: str
    warm_ns: float | None
    warm_ci95_ns: Interval | None
    cold_ns: float | None
    sampled_ns: float | None
    cause: str | None


class GuardTree(Struct, frozen=True, forbid_unknown_fields=True):
    """A check of the whole guard tree, ns."""

    warm_ns: float
    warm_ci95_ns: Interval
    cold_ns: float | None


class CompileNote(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a frame was compiled again, or a graph broke, and where."""

    kind: str
    place: str
    reason: str


class BreakdownDocument(Document, frozen=True, kw_only=True):
    """Where every nanosecond of one call goes. ``host`` lists every category, zeros included, and sums to the wall."""

    schema: Literal["overhead-lens/breakdown/2"] = "overhead-lens/breakdown/2"
    subject: Subject
    per: Literal["call"] = "call"
    unit: Literal["ns"] = "ns"
    wall: Wall
    host: list[Category]
    device: Device | None
    closure: Closure
    cross_checks: list[CrossCheck]
    instructions: Instructions | None
    guards: list[Guard]
    guard_tree: GuardTree | None
    compile_notes: list[CompileNote]
    warnings: list[str]
    environment: dict[str, Any]
    capture: str


def breakdown_document(breakdown: model.Breakdown) -> BreakdownDocument:
    """The document of a budget."""
    return BreakdownDocument(
        subject=json_subject(breakdown.subject),
        wall=_wall(breakdown.wall),
        host=[_category(each) for each in breakdown.host],
        device=None if breakdown.device is None else _device(breakdown.device),
        closure=_closure(breakdown.closure),
        cross_checks=[_cross_check(check) for check in breakdown.cross_checks],
        instructions=None if breakdown.instructions is None else _instructions(breakdown.instructions),
        guards=[_guard(guard) for guard in breakdown.guards],
        guard_tree=None if breakdown.guard_tree is None else _guard_tree(breakdown.guard_tree),
        compile_notes=[CompileNote(note.kind, note.place, note.reason) for note in breakdown.compile_notes],
        warnings=list(breakdown.warnings),
        environment=dict(breakdown.environment),
        capture=breakdown.capture,
    )


def _wall(wall: model.Wall) -> Wall:
    return Wall(
        float(wall.ns),
        tenths(wall.ci95_ns),
        wall.processes,
        wall.blocks,
        wall.calls,
        round(wall.floor_ns, 3),
        None if wall.floor is None else _floor(wall.floor),
    )


def _floor(floor: model.Floor) -> Floor:
    return Floor(round(floor.ns, 3), floor.bound, floor.level, round(floor.flops_per_s), round(floor.bytes_per_s))


def _category(category: HostCategory) -> Category:
    return Category(
        category.category,
        float(category.ns),
        tenths(category.ci95_ns),
        round(category.share, 5),
        category.evidence,
        [Part(part.name, float(part.ns)) for part in category.parts],
        [Frame(frame.frame, float(frame.ns)) for frame in category.top],
    )


def _device(device: model.DeviceShare) -> Device:
    return Device(
        device.device,
        device.kind,
        "trace",
        device.busy_ns,
        device.idle_ns,
        Kinds(device.compute_ns, device.communication_ns, device.copy_ns, device.overlap_ns),
        dict(device.idle_blame),
        round(device.events_per_call, 3),
        Launch(
            round(device.launches_per_call, 3),
            device.launch_median_ns,
            device.launch_p99_ns,
            round(device.graph_launches_per_call, 3),
        ),
        [Kernel(each.name, each.kind, each.per_call, each.ns) for each in device.top],
    )


def _closure(closure: model.Closure) -> Closure:
    return Closure(
        float(closure.sum_ns),
        float(closure.residual_ns),
        None if closure.trace_sum_ns is None else float(closure.trace_sum_ns),
        rounded(closure.trace_residual_share, 4),
        None if closure.trace_bare_ns is None else float(closure.trace_bare_ns),
    )


def _cross_check(check: model.CrossCheck) -> CrossCheck:
    samples_ns, trace_ns, ablation_ns = (
        None if seen is None else round(seen.ns, 1) for seen in (check.samples, check.trace, check.ablation)
    )
    samples_ci95_ns, trace_ci95_ns, ablation_ci95_ns = (
        None if seen is None else tenths(seen.ci95_ns) for seen in (check.samples, check.trace, check.ablation)
    )
    return CrossCheck(
        check.category,
        samples_ns,
        trace_ns,
        ablation_ns,
        check.agree,
        check.bound,
        samples_ci95_ns,
        trace_ci95_ns,
        ablation_ci95_ns,
    )


def _instructions(budget: model.InstructionBudget) -> Instructions:
    host = [
        CountCategory(
            each.category,
            each.count,
            [CountPart(part.name, part.count) for part in each.parts],
            [CountFrame(frame.frame, frame.count) for frame in each.frames[:_TOP]],
        )
        for each in budget.host
    ]
    return Instructions(budget.count, budget.counted, budget.calls, host)


def _guard(guard: model.Guard) -> Guard:
    return Guard(
        guard.guard,
        rounded(guard.warm_ns, 1),
        None if guard.warm_ci95_ns is None else tenths(guard.warm_ci95_ns),
        rounded(guard.cold_ns, 1),
        rounded(guard.sampled_ns, 1),
        guard.cause,
    )


def _guard_tree(tree: model.GuardTree) -> GuardTree:
    return GuardTree(round(tree.warm_ns, 1), tenths(tree.warm_ci95_ns), rounded(tree.cold_ns, 1))
