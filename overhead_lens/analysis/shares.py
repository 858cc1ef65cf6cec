"""Shares of the measured call per category and part, from classified stacks or from classified trace time.

Samples are multinomial: with ``n`` stacks a share's uncertainty is that of counts. Replicates are drawn from the
posterior under Jeffreys' prior, so that a category that was never seen keeps an honest upper bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead_lens.analysis.names import display_name
from overhead_lens.analysis.wall import REPLICATES, Floats
from overhead_lens.categories import HOST_CATEGORIES, UNCLAIMED, Claim, Classified
from overhead_lens.stack import Stack

KERNEL = Claim("kernel")
PAGE_FAULT = Claim("allocation", "page_fault")

_SEED = 20_240_301

# System calls that give memory to the process or take it back: their time is in the system time of the thread.
_MEMORY_CALLS = frozenset({"munmap", "mmap", "mmap64", "brk", "sbrk", "madvise", "mremap"})


@dataclass(frozen=True, slots=True)
class Shares:
    """How the measured call divides.

    Attributes:
        evidence: ``samples`` or ``trace``.
        weight: Samples seen, or ns of trace, in all.
        claims: Weight per claim.
        frames: Weight per category and frame label.
        memory_calls: Share of the weight spent in system calls for memory.
        replicates: float64, shape ``(REPLICATES, len(HOST_CATEGORIES))``, rows sum to 1.
    """

    evidence: str
    weight: float
    claims: Mapping[Claim, float]
    frames: Mapping[str, Mapping[str, float]]
    memory_calls: float
    replicates: Floats

    def share(self, category: str) -> float:
        """Share of a category, 0 to 1."""
        return sum(weight for claim, weight in self.claims.items() if claim.category == category) / self.weight


def shares_of_stacks(stacks: Sequence[Stack], verdicts: Sequence[Classified]) -> Shares:
    """Shares of classified stacks; there must be at least one."""
    claims: Counter[Claim] = Counter()
    frames: dict[str, Counter[str]] = {}
    memory_calls = 0
    for stack, verdict in zip(stacks, verdicts, strict=True):
        claims[verdict.claim] += stack.count
        frames.setdefault(verdict.claim.category, Counter())[display_name(verdict.frame)] += stack.count
        memory_calls += stack.count * (stack.frames[-1].function in _MEMORY_CALLS)
    total = sum(claims.values())
    counts = _by_category(claims)
    return Shares("samples", total, claims, frames, memory_calls / total, _multinomial(counts))


def with_page_faults(shares: Shares, moved_share: float) -> Shares:
    """Move part of the kernel's weight to ``allocation/page_fault``; every kernel frame gives in proportion.

    Args:
        shares: From samples; their replicates are left as they are.
        moved_share: Share of the kernel's weight that page faults took, 0 to 1.
    """
    if moved_share == 0:
        return shares
    moved = shares.share("kernel") * shares.weight * moved_share
    claims = {claim: weight * (1 - moved_share * (claim == KERNEL)) for claim, weight in shares.claims.items()}
    frames = {category: dict(seen) for category, seen in shares.frames.items()}
    frames["kernel"] = {frame: weight * (1 - moved_share) for frame, weight in frames["kernel"].items()}
    frames.setdefault("allocation", {})["page faults: first touch of fresh memory"] = moved
    return replace(shares, claims={**claims, PAGE_FAULT: moved}, frames=frames)


def shares_of_time(claims: Mapping[Claim, float], frames: Mapping[str, Mapping[str, float]], spread: float) -> Shares:
    """Shares of trace time.

    Args:
        claims: ns per claim.
        frames: ns per category and event name.
        spread: Relative uncertainty of each category's share (one standard deviation), from the correction's residual.
    """
    known = dict(claims) or {UNCLAIMED: 1.0}
    counts = np.array(_by_category(known), dtype=np.float64)
    random = np.random.default_rng(_SEED)
    drawn = counts * np.exp(random.normal(0.0, spread, (REPLICATES, len(counts))))
    return Shares("trace", sum(known.values()), known, frames, 0.0, drawn / drawn.sum(axis=1, keepdims=True))


def _by_category(claims: Mapping[Claim, float]) -> list[float]:
    by_category: Counter[str] = Counter()
    for claim, weight in claims.items():
        by_category[claim.category] += weight  # type: ignore[assignment]
    return [by_category[category] for category in HOST_CATEGORIES]


def _multinomial(counts: Iterable[float]) -> Floats:
    random = np.random.default_rng(_SEED)
    return random.dirichlet(np.array(list(counts)) + 0.5, REPLICATES)
