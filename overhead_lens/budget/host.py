"""Divides the wall time among the categories: times, parts, costliest frames and intervals."""

from __future__ import annotations

import numpy as np

from overhead_lens.budget.shares import Shares
from overhead_lens.stats.bootstrap import Estimate
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.host import Frame, HostCategory, parts_of
from overhead_lens.units import round_to_sum

_TOP_FRAMES = 8


def replicates(wall: Estimate, shares: Shares, faults: Estimate) -> Floats:
    """Bootstrap replicates of every category, float64, shape ``(REPLICATES, categories)``, ns per call.

    Args:
        shares: As sampled, page faults in ``kernel``; the result has them in ``allocation``.
        faults: Time of page faults, ns per call.
    """
    drawn = shares.replicates * wall.replicates[:, None]
    kernel, allocation = HOST_CATEGORIES.index("kernel"), HOST_CATEGORIES.index("allocation")
    fault_ns = np.minimum(faults.replicates, drawn[:, kernel])
    drawn[:, kernel] -= fault_ns
    drawn[:, allocation] += fault_ns
    return drawn


def host_categories(wall_ns: int, shares: Shares, drawn: Floats) -> tuple[HostCategory, ...]:
    """Every category in the taxonomy's order, with intervals from ``drawn`` (``replicates``); they sum to ``wall_ns`` exactly."""
    rounded = round_to_sum([shares.share(name) * wall_ns for name in HOST_CATEGORIES], wall_ns)
    return tuple(
        _category(name, ns, wall_ns, shares, drawn[:, position])
        for position, (name, ns) in enumerate(zip(HOST_CATEGORIES, rounded, strict=True))
    )


def _category(name: str, ns: int, wall_ns: int, shares: Shares, drawn: Floats) -> HostCategory:
    low, high = (float(bound) for bound in np.quantile(drawn, [0.025, 0.975]))
    share = shares.share(name)
    present = ns > 0 or share > 0
    interval = (min(low, ns), max(high, ns)) if present else (0.0, max(high, 0.0))
    scale = wall_ns / shares.weight
    frames = sorted(shares.frames.get(name, {}).items(), key=lambda item: -item[1])[:_TOP_FRAMES]
    top = tuple(Frame(frame, round(weight * scale)) for frame, weight in frames)
    evidence = shares.evidence if present else "none"
    parts = parts_of(name, ns, shares.attributions)
    return HostCategory(name, ns, interval, share, evidence, parts, top)
