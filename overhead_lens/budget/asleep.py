"""Bounds the time that stacks show a thread asleep by its CPU clock (pure).

A sampler stops threads one after the other, and lets them go in the same order. Threads that take turns wait for those that are
stopped longer, and are seen waiting too often::

    one      ####----------|stopped      |--------####
    another  ....##########|####|stopped      |####...      asleep, but stopped when the other one is already awake

A thread's CPU clock stands still while it sleeps, and does not care who looks: it cannot have slept for more time than it was off
the cores. Where stacks say so, that is the time it slept, and what it did awake divides as its other stacks do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from overhead_lens.budget.shares import Shares, reweighted
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import UNATTRIBUTED
from overhead_lens.taxonomy.rules import Attribution

FEWEST_AWAKE = 30
"""Stacks of a thread that is awake: fewer do not say what it does then."""

# A device or the end of a parallel region may be waited for on a core.
_ASLEEP = frozenset(Attribution("wait", part) for part in ("gil", "lock", "io", "data"))
_RAN = "ran by its CPU clock, while stacks show it waiting"
# Less than this is what the clock of an idle thread shows, and chance.
_LEAST_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Slept:
    """What stacks say of a thread's sleep, and the most that its CPU clock leaves for it, as shares of the time."""

    by_stacks: float
    at_most: float

    @property
    def disagree(self) -> bool:
        """Whether stacks show more sleep than the clock leaves."""
        return self.by_stacks - self.at_most > _LEAST_SHARE


def slept(shares: Shares, off_cores: float) -> Slept:
    """How much a thread slept.

    Args:
        off_cores: Share of the time that it was on no core.
    """
    asleep = sum(weight for attribution, weight in shares.attributions.items() if attribution in _ASLEEP)
    return Slept(asleep / shares.weight, min(1.0, max(0.0, off_cores)))


def bounded(shares: Shares, found: Slept) -> Shares:
    """The shares of a thread that slept no longer than its CPU clock leaves; of few stacks awake, the rest is unattributed."""
    if not found.disagree:
        return shares
    if (1.0 - found.by_stacks) * shares.weight >= FEWEST_AWAKE:
        return reweighted(shares, _ASLEEP.__contains__, found.at_most)
    return _moved(shares, found)


def _moved(shares: Shares, found: Slept) -> Shares:
    """The shares with the sleep beyond the bound moved to ``unattributed``."""
    kept = found.at_most / found.by_stacks
    moved = (found.by_stacks - found.at_most) * shares.weight
    attributions = {
        attribution: weight * (kept if attribution in _ASLEEP else 1.0)
        for attribution, weight in shares.attributions.items()
    }
    attributions[UNATTRIBUTED] = attributions.get(UNATTRIBUTED, 0.0) + moved
    wait, unattributed = HOST_CATEGORIES.index("wait"), HOST_CATEGORIES.index(UNATTRIBUTED.category)
    of_wait = moved / shares.weight / shares.share("wait")
    frames = {category: dict(weights) for category, weights in shares.frames.items()}
    frames["wait"] = {frame: weight * (1.0 - of_wait) for frame, weight in frames["wait"].items()}
    frames.setdefault(UNATTRIBUTED.category, {})[_RAN] = moved
    replicates, per_process = (
        _between(each, wait, unattributed, of_wait) for each in (shares.replicates, shares.per_process)
    )
    return replace(shares, attributions=attributions, frames=frames, replicates=replicates, per_process=per_process)


def _between(rows: Floats, source: int, target: int, share: float) -> Floats:
    """The rows with a share of one column moved to another."""
    moved: Floats = rows.copy()
    moved[:, target] += share * moved[:, source]
    moved[:, source] *= 1.0 - share
    return moved
