"""Closed budgets as slices: what one call, step or thread spends, category after category, to the nanosecond.

The order is the taxonomy's and says nothing about the order of events inside a call::

    | python                      | dispatcher      | allocation |
    | user | binding |            | dispatch        | tensor     |
    0                                                       wall.ns
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from overhead_lens.budget.model import Breakdown, DeviceShare, Guard, Operator
from overhead_lens.export.lanes.model import Lane, Slice, Value
from overhead_lens.export.names import readable
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns, proportional

BUDGET = "budget"
"""Category of the slices whose lengths sum to the result that a picture is of; other budgets in it have another."""

DEVICE_BUDGET = "device budget"
"""The same of a device."""

BUDGET_GROUP = "Overhead Lens"
BUSY = "busy"
IDLE = "idle"

_GUARD = "guard"
_OTHER = "other frames"

Pieces = Sequence[tuple[str, int]]


def budget_lane(breakdown: Breakdown) -> Lane:
    """One slice per category that took time, its parts inside; lengths are the budget's own integers."""
    subject = breakdown.subject
    description = (
        f"{readable(subject.title)}, {breakdown.mode}, {readable(subject.device)}: one call takes {format_ns(breakdown.wall.ns)} "
        "unprofiled. The categories sum to it; their order is not the order of events."
    )
    inside = {_GUARD: _guards(breakdown.guards, breakdown.category(_GUARD).ns)}
    slices = host_slices(breakdown.host, inside=inside)
    return Lane("Budget of one call", slices, group=BUDGET_GROUP, description=description)


def host_slices(
    host: Iterable[HostCategory], *, start_ns: int = 0, kind: str = BUDGET, inside: Mapping[str, Pieces] | None = None
) -> Iterator[Slice]:
    """Slices of the categories that took time, their pieces inside, one after the other.

    Args:
        inside: Pieces of a category that has no parts; by default its costliest frames.
    """
    for category in host:
        if category.ns:
            name = f"{category.category} {format_ns(category.ns)}, {category.share:.0%}"
            end_ns = start_ns + category.ns
            yield Slice(start_ns, end_ns, name, kind, _arguments(category), color=category.category)
            yield from _pieces(category, start_ns, (inside or {}).get(category.category, ()))
        start_ns += category.ns


def device_lane(share: DeviceShare) -> Lane:
    """The device's own partition of the call: busy, then idle by what the host was doing meanwhile."""
    busy: dict[str, Value] = {
        "compute_ns": share.compute_ns,
        "communication_ns": share.communication_ns,
        "copy_ns": share.copy_ns,
        "overlap_ns": share.overlap_ns,
    }
    if share.top:
        busy["kernels"] = [{"kernel": readable(kernel.name), "ns": kernel.ns} for kernel in share.top]
    idle = [idle_slice(blamed, 0, ns) for blamed, ns in share.idle_blame.items()]
    description = (
        f"Device {readable(share.device)} during one call: busy {format_ns(share.busy_ns)}; idle by what the host was doing "
        "when it should have fed the device, 'queue' after the launch. Their order is not the order of events."
    )
    slices = _one_behind_the_other([busy_slice(0, share.busy_ns, busy), *idle])
    return Lane(f"Device {readable(share.device)} of one call", slices, group=BUDGET_GROUP, description=description)


def busy_slice(start_ns: int, end_ns: int, arguments: Mapping[str, Value] | None = None) -> Slice:
    """Busy time of a device."""
    return Slice(start_ns, end_ns, BUSY, DEVICE_BUDGET, {"category": BUSY, **(arguments or {})}, color=BUSY)


def idle_slice(blamed: str, start_ns: int, end_ns: int) -> Slice:
    """Idle time of a device, with the category it is blamed on."""
    name = f"{IDLE}: {blamed}"
    return Slice(start_ns, end_ns, name, DEVICE_BUDGET, {"category": name, "blamed on": blamed}, color=blamed)


def _one_behind_the_other(sums: Iterable[Slice]) -> Iterator[Slice]:
    start_ns = 0
    for each in sums:
        end_ns = start_ns + each.end_ns
        if end_ns > start_ns:
            yield each._replace(start_ns=start_ns, end_ns=end_ns, name=f"{each.name} {format_ns(each.end_ns)}")
        start_ns = end_ns


def operator_lane(root: Operator) -> Lane:
    """Nested operators as sampled, each with its self time by category; lengths are those of the unprofiled call."""
    description = (
        "Operators by samples: each as long as it takes in the unprofiled call, its own time by category before the operators "
        "that it calls. Their order is not the order of events."
    )
    return Lane("Operators of one call", _operator(root, 0), group=BUDGET_GROUP, description=description)


def _operator(operator: Operator, start_ns: int) -> Iterator[Slice]:
    arguments: dict[str, Value] = {"ns": operator.total_ns, "self ns": operator.self_ns}
    if operator.called_from:
        arguments["called from"] = readable(operator.called_from)
    name = f"{readable(operator.name)} {format_ns(operator.total_ns)}"
    yield Slice(start_ns, start_ns + operator.total_ns, name, "operator", arguments)
    for category, ns in operator.categories.items():
        if ns:
            yield Slice(start_ns, start_ns + ns, f"{category} {format_ns(ns)}", "self time", color=category)
        start_ns += ns
    for child in operator.children:
        if child.total_ns:
            yield from _operator(child, start_ns)
        start_ns += child.total_ns


def _pieces(category: HostCategory, start_ns: int, pieces: Pieces) -> Iterator[Slice]:
    parts = [(part.name, part.ns) for part in category.parts]
    for name, ns in parts or pieces or _frames(category):
        if ns:
            title = f"{readable(name)} {format_ns(ns)}"
            yield Slice(start_ns, start_ns + ns, title, "part", {"ns": ns}, color=category.category)
        start_ns += ns


def _frames(category: HostCategory) -> Pieces:
    """The category's costliest frames, clipped to its time, and the remainder."""
    pieces, left_ns = [], category.ns
    for frame in category.top:
        ns = min(frame.ns, left_ns)
        pieces.append((frame.frame, ns))
        left_ns -= ns
    return [*pieces, (_OTHER, left_ns)]


def _guards(guards: Sequence[Guard], ns: int) -> Pieces:
    """Each guard's share of the guard category; empty without stacks."""
    shares = proportional([guard.sampled_ns or 0.0 for guard in guards], ns) if guards else []
    return [(guard.guard, share) for guard, share in zip(guards, shares, strict=True)] if any(shares) else []


def _arguments(category: HostCategory) -> dict[str, Value]:
    arguments: dict[str, Value] = {
        "category": category.category,
        "ns": category.ns,
        "evidence": readable(category.evidence),
    }
    numbers = {"share": category.share}
    if category.ci95_ns[0] < category.ci95_ns[1]:
        numbers |= {"ci95_low_ns": category.ci95_ns[0], "ci95_high_ns": category.ci95_ns[1]}
    arguments.update({key: float(number) for key, number in numbers.items() if math.isfinite(number)})
    if category.top:
        arguments["top"] = [{"frame": readable(frame.frame), "ns": frame.ns} for frame in category.top]
    return arguments
