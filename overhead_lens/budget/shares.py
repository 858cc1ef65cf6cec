"""Shares of the measured call per category and part, from classified stacks or from classified trace time.

Samples are multinomial: with ``n`` stacks a share's uncertainty is that of counts. Replicates are drawn from the
posterior under Jeffreys' prior, so that a category that was never seen keeps an honest upper bound. Processes differ as
well (20 captures that each sampled one process had intervals that met in only 85 % of pairs), so several are sampled, and
their differences make the interval.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead_lens.stack import Stack
from overhead_lens.stats.bootstrap import REPLICATES
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import UNATTRIBUTED, Classifier
from overhead_lens.taxonomy.names import display_name
from overhead_lens.taxonomy.rules import Attribution

KERNEL = Attribution("kernel")
PAGE_FAULT = Attribution("allocation", "page_fault")

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
        per_process: The same shares process by process, shape ``(processes, len(HOST_CATEGORIES))``; no row from a trace.
        counts: Stacks by process, per category and frame, shape ``(processes,)`` each; empty from a trace.
    """

    evidence: str
    weight: float
    attributions: Mapping[Attribution, float]
    frames: Mapping[str, Mapping[str, float]]
    memory_calls: float
    replicates: Floats
    per_process: Floats
    counts: Mapping[tuple[str, str], Floats]

    def share(self, category: str) -> float:
        """Share of a category, 0 to 1."""
        return (
            sum(weight for attribution, weight in self.attributions.items() if attribution.category == category)
            / self.weight
        )

    def frames_ns(self, wall_ns: float) -> dict[str, dict[str, float]]:
        """Time per category and frame, in ns per call, of a call that takes ``wall_ns``."""
        return {
            category: {frame: weight * wall_ns / self.weight for frame, weight in frames.items()}
            for category, frames in self.frames.items()
        }


def shares_of_stacks(samples: Sequence[Sequence[Stack]], classifier: Classifier) -> Shares:
    """Shares of the stacks of several processes; there must be at least one stack."""
    attributions: Counter[Attribution] = Counter()
    frames: dict[str, Counter[str]] = {}
    memory_calls = 0
    counts = np.zeros((len(samples), len(HOST_CATEGORIES)))
    by_frame: defaultdict[tuple[str, str], Floats] = defaultdict(lambda: np.zeros(len(samples)))
    for process, stacks in enumerate(samples):
        for stack in stacks:
            verdict = classifier.classify(stack)
            attributions[verdict.attribution] += stack.count
            category, frame = verdict.attribution.category, display_name(verdict.frame)
            frames.setdefault(category, Counter())[frame] += stack.count
            by_frame[category, frame][process] += stack.count
            memory_calls += stack.count * (stack.frames[-1].function in _MEMORY_CALLS)
            counts[process, HOST_CATEGORIES.index(category)] += stack.count
    total = sum(attributions.values())
    per_process = counts / counts.sum(axis=1, keepdims=True)
    return Shares(
        "samples", total, attributions, frames, memory_calls / total, _draw(counts), per_process, dict(by_frame)
    )


def with_page_faults(shares: Shares, moved_share: float) -> Shares:
    """Move part of the kernel's weight to ``allocation/page_fault``; every kernel frame gives in proportion.

    Args:
        shares: From samples; their replicates are left as they are.
        moved_share: Share of the kernel's weight that page faults took, 0 to 1.
    """
    if moved_share == 0:
        return shares
    moved = shares.share("kernel") * shares.weight * moved_share
    attributions = {
        attribution: weight * (1 - moved_share * (attribution == KERNEL))
        for attribution, weight in shares.attributions.items()
    }
    frames = {category: dict(seen) for category, seen in shares.frames.items()}
    frames["kernel"] = {frame: weight * (1 - moved_share) for frame, weight in frames["kernel"].items()}
    frames.setdefault("allocation", {})["page faults: first touch of fresh memory"] = moved
    per_process = shares.per_process.copy()
    kernel, allocation = HOST_CATEGORIES.index("kernel"), HOST_CATEGORIES.index("allocation")
    per_process[:, allocation] += moved_share * per_process[:, kernel]
    per_process[:, kernel] *= 1 - moved_share
    return replace(shares, attributions={**attributions, PAGE_FAULT: moved}, frames=frames, per_process=per_process)


def shares_of_time(
    attributions: Mapping[Attribution, float], frames: Mapping[str, Mapping[str, float]], spread: float
) -> Shares:
    """Shares of trace time.

    Args:
        claims: ns per claim.
        frames: ns per category and event name.
        spread: Relative uncertainty of each category's share (one standard deviation), from the correction's residual.
    """
    known = dict(attributions) or {UNATTRIBUTED: 1.0}
    counts = np.array(_by_category(known), dtype=np.float64)
    random = np.random.default_rng(_SEED)
    drawn = counts * np.exp(random.normal(0.0, spread, (REPLICATES, len(counts))))
    replicates = drawn / drawn.sum(axis=1, keepdims=True)
    return Shares("trace", sum(known.values()), known, frames, 0.0, replicates, np.empty((0, len(counts))), {})


def _by_category(attributions: Mapping[Attribution, float]) -> list[float]:
    by_category: Counter[str] = Counter()
    for attribution, weight in attributions.items():
        by_category[attribution.category] += weight  # type: ignore[assignment]
    return [by_category[category] for category in HOST_CATEGORIES]


def _draw(counts: Floats) -> Floats:
    """Replicates of the shares from counts per process and category, shape ``(processes, categories)``.

    What processes were seen to differ by holds the sampling error of each, so the mean over them has Student's t with one
    degree of freedom less than processes: drawn for all categories together, so that they keep summing to 1. Only where that
    spread is smaller than counts of so many stacks allow, because few processes met by chance or hardly ever saw a
    category, is it that of the counts.
    """
    random = np.random.default_rng(_SEED)
    processes = len(counts)
    of_counts: Floats = random.dirichlet(counts.sum(axis=0) + 0.5, REPLICATES)
    if processes == 1:
        return of_counts
    seen = counts / counts.sum(axis=1, keepdims=True)
    pooled = counts.sum(axis=0) / counts.sum()
    normal = random.normal(size=(REPLICATES, processes)) @ (seen - seen.mean(axis=0))
    chi_square = random.chisquare(processes - 1, (REPLICATES, 1))
    of_processes = pooled + normal / np.sqrt(processes * chi_square)
    wider = _width(of_processes) >= _width(of_counts)
    drawn = np.maximum(np.where(wider, of_processes, of_counts), 0.0)
    shares: Floats = drawn / drawn.sum(axis=1, keepdims=True)
    return shares


def _width(replicates: Floats) -> Floats:
    low, high = np.quantile(replicates, [0.025, 0.975], axis=0)
    width: Floats = high - low
    return width
