"""The closed budget as a lane: what one call spends, category after category, to the nanosecond."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from overhead_lens.budget.model import Breakdown
from overhead_lens.export.lanes.model import Lane, Slice, Value
from overhead_lens.export.names import readable
from overhead_lens.taxonomy.host import HostCategory

BUDGET_LANE = "Budget of one call"
BUDGET_GROUP = "Overhead Lens"
CATEGORY = "host category"
PART = "part"


def budget_lane(breakdown: Breakdown) -> Lane:
    """One slice per category that took time, its parts inside it; lengths are the budget's own integers.

    The order is the taxonomy's and says nothing about the order of events inside a call::

        | python                      | dispatcher      | allocation |
        | user | binding |            | dispatch        | tensor     |
        0                                                       wall.ns
    """
    subject = breakdown.subject
    mode = "compiled" if subject.compile else "eager"
    description = (
        f"{readable(f'{subject.name}:{subject.variant}')}, {mode}, {readable(subject.device)}: one call"
        f" takes {breakdown.wall.ns} ns unprofiled. The slices sum to it; their order is not the order of events."
    )
    return Lane(BUDGET_LANE, host_slices(breakdown.host), group=BUDGET_GROUP, description=description)


def host_slices(host: Iterable[HostCategory]) -> Iterator[Slice]:
    """Slices of the categories that took time, their parts inside, one behind the other."""
    start_ns = 0
    for category in host:
        if category.ns:
            yield Slice(start_ns, start_ns + category.ns, category.category, CATEGORY, _arguments(category))
            yield from _parts(category, start_ns)
        start_ns += category.ns


def _parts(category: HostCategory, start_ns: int) -> Iterator[Slice]:
    for part in category.parts:
        if part.ns:
            yield Slice(start_ns, start_ns + part.ns, readable(part.name), PART)
        start_ns += part.ns


def _arguments(category: HostCategory) -> dict[str, Value]:
    arguments: dict[str, Value] = {"evidence": readable(category.evidence)}
    numbers = {"share": category.share, "ci95_low_ns": category.ci95_ns[0], "ci95_high_ns": category.ci95_ns[1]}
    arguments.update({key: float(number) for key, number in numbers.items() if math.isfinite(number)})
    if category.top:
        arguments["top"] = [{"frame": readable(frame.frame), "ns": frame.ns} for frame in category.top]
    return arguments
