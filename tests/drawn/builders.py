"""Small valid values for tests."""

from __future__ import annotations

from collections.abc import Mapping

from overhead_lens.budget.model import Breakdown, Closure, Wall
from overhead_lens.subject import Subject
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import Frame, HostCategory, Part


def breakdown(
    parts: Mapping[str, Mapping[str, int]] | None = None, /, scenario: str = "drawn", **host_ns: int
) -> Breakdown:
    """A budget of the given categories in ns; ``parts`` are those of each category."""
    wall_ns = sum(host_ns.values())
    host = tuple(
        _category(name, host_ns.get(name, 0), wall_ns, (parts or {}).get(name, {})) for name in HOST_CATEGORIES
    )
    return Breakdown(
        subject=Subject("scenario", scenario, scenario, {"size": 10}),
        wall=Wall(wall_ns, (0.9 * wall_ns, 1.1 * wall_ns), 5, 100, 1000, 0.0),
        host=host,
        closure=Closure(wall_ns, 0, None, None, None),
    )


def _category(name: str, ns: int, wall_ns: int, parts: Mapping[str, int]) -> HostCategory:
    top = (Frame(f"{name}_frame (file.py)", ns),) if ns else ()
    share = ns / wall_ns if wall_ns else 0.0
    pieces = tuple(Part(part, part_ns) for part, part_ns in parts.items())
    return HostCategory(name, ns, (0.9 * ns, 1.1 * ns), share, "samples" if ns else "none", pieces, top)
