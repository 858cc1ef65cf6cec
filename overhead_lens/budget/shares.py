"""Divides the measured call into shares per category, from classified stacks or trace time.

Stack counts are multinomial. Replicates are drawn from the posterior under Jeffreys' prior, so that a category without samples
keeps an upper bound. Processes differ as well: several are sampled, and their differences make the interval. Consecutive stacks
of one process resemble each other: blocks of them, in the order of time, show by how much their counts scatter beyond that.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from overhead_lens.stack import Stack
from overhead_lens.stats.bootstrap import REPLICATES
from overhead_lens.stats.overdispersion import overdispersion
from overhead_lens.stats.values import Floats
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import UNATTRIBUTED, Classified, Classifier
from overhead_lens.taxonomy.names import display_name
from overhead_lens.taxonomy.rules import Attribution

KERNEL = Attribution("kernel")
PAGE_FAULT = Attribution("allocation", "page_fault")

FIRST_TOUCH = "page faults: first touch of fresh memory"

_SEED = 20_240_301

# System calls for memory, whose time is in the thread's system time.
_MEMORY_CALLS = frozenset({"munmap", "mmap", "mmap64", "brk", "sbrk", "madvise", "mremap"})


@dataclass(frozen=True, slots=True)
class Shares:
    """The shares of categories, parts and frames in the measured call.

    Attributes:
        evidence: ``samples`` or ``trace``.
        weight: Samples, or ns of trace.
        attributions: Weight per attribution.
        frames: Weight per category and frame label.
        memory_calls: Share of the weight spent in system calls for memory.
        replicates: Shares, shape ``(REPLICATES, categories)``; rows sum to 1.
        per_process: Shares by process, shape ``(processes, categories)``; no row from a trace.
        counts: Stacks by process, per category and frame, shape ``(processes,)``; empty from a trace.
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
        weights = (weight for attribution, weight in self.attributions.items() if attribution.category == category)
        return sum(weights) / self.weight

    def frames_ns(self, wall_ns: float) -> dict[str, dict[str, float]]:
        """Time per category and frame of a call that takes ``wall_ns``."""
        return {
            category: {frame: weight * wall_ns / self.weight for frame, weight in frames.items()}
            for category, frames in self.frames.items()
        }


def shares_of_stacks(samples: Sequence[Sequence[Stack]], classifier: Classifier) -> Shares:
    """Shares of the stacks of one or more processes, at least one stack in all."""
    return shares_of_verdicts(samples, map(classifier.classify, chain.from_iterable(samples)))


def shares_of_verdicts(samples: Sequence[Sequence[Stack]], verdicts: Iterable[Classified]) -> Shares:
    """The same of stacks with their attributions, in the same order."""
    each = iter(verdicts)
    attributions: Counter[Attribution] = Counter()
    frames: dict[str, Counter[str]] = {}
    memory_calls = 0
    counts = np.zeros((len(samples), len(HOST_CATEGORIES)))
    by_frame: defaultdict[tuple[str, str], Floats] = defaultdict(lambda: np.zeros(len(samples)))
    for process, stacks in enumerate(samples):
        for stack in stacks:
            verdict = next(each)
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


def shares_of_blocks(blocks: Sequence[Sequence[Stack]], classifier: Classifier) -> Shares:
    """Shares of the stacks of one process, with replicates as wide as its blocks differ.

    Ten to twenty blocks serve best: fewer estimate the dispersion badly, more hold too few stacks each.

    Args:
        blocks: Stacks of equal times, in the order of time; at least one stack in all.
    """
    apart = shares_of_stacks([block for block in blocks if block], classifier)
    counts = np.zeros((len(HOST_CATEGORIES), len(apart.per_process)))
    for (category, _), of_frame in apart.counts.items():
        counts[HOST_CATEGORIES.index(category)] += of_frame
    own = counts.sum(axis=1)
    pooled = {key: of_frame.sum(keepdims=True) for key, of_frame in apart.counts.items()}
    return replace(apart, per_process=(own / own.sum())[None, :], counts=pooled, replicates=draw_over_blocks(counts))


def with_page_faults(shares: Shares, fault_share: float) -> Shares:
    """The shares with ``fault_share`` (0 to 1) of all kernels as ``allocation/page_fault``."""
    kernels = {attribution for attribution in shares.attributions if attribution.category == "kernel"}
    return moved(shares, "kernel", kernels, fault_share, PAGE_FAULT, FIRST_TOUCH)


def moved(
    shares: Shares, category: str, chosen: Container[Attribution], share: float, target: Attribution, frame: str
) -> Shares:
    """The shares with ``share`` (0 to 1) of a category's ``chosen`` attributions as ``target``, in a ``frame`` of its own.

    Frames and stacks do not tell the attributions of a category apart: all of them shrink alike.
    """
    weight = share * sum(own for attribution, own in shares.attributions.items() if attribution in chosen)
    if not weight:
        return shares
    attributions = {
        attribution: own * (1 - share if attribution in chosen else 1)
        for attribution, own in shares.attributions.items()
    }
    attributions[target] = attributions.get(target, 0.0) + weight
    of_category = weight / shares.weight / shares.share(category)
    frames = {name: dict(weights) for name, weights in shares.frames.items()}
    frames[category] = {name: own * (1 - of_category) for name, own in frames[category].items()}
    into, key = frames.setdefault(target.category, {}), (target.category, frame)
    into[frame] = into.get(frame, 0.0) + weight
    counts = {each: stacks * (1 - of_category * (each[0] == category)) for each, stacks in shares.counts.items()}
    counts[key] = sum((shares.counts[each] - left for each, left in counts.items()), counts.get(key, np.zeros(())))
    among = np.eye(len(HOST_CATEGORIES))[HOST_CATEGORIES.index(target.category)]
    return replace(
        shares,
        attributions=attributions,
        frames=frames,
        replicates=divided(shares.replicates, category, of_category, among),
        per_process=divided(shares.per_process, category, of_category, among),
        counts=counts,
    )


def divided(rows: Floats, category: str, share: float, among: Floats) -> Floats:
    """Rows, shape ``(n, categories)``, with a share of one category divided among the categories."""
    at = HOST_CATEGORIES.index(category)
    given = share * rows[:, at : at + 1]
    mixed: Floats = rows + given * among
    mixed[:, at] -= given[:, 0]
    return mixed


def reweighted(shares: Shares, is_chosen: Callable[[Attribution], bool], share: float) -> Shares:
    """The shares, scaled so that chosen attributions have ``share`` (0 to 1) of the time; both groups keep their proportions."""
    before = sum(each for attribution, each in shares.attributions.items() if is_chosen(attribution)) / shares.weight
    if not 0.0 < before < 1.0:
        return shares
    inside, outside = share / before, (1.0 - share) / (1.0 - before)
    attributions = {
        attribution: weight * (inside if is_chosen(attribution) else outside)
        for attribution, weight in shares.attributions.items()
    }
    factors = {name: _factor(name, shares, attributions) for name in HOST_CATEGORIES}
    by_category = np.array(list(factors.values()))
    replicates, per_process = shares.replicates * by_category, shares.per_process * by_category
    return replace(
        shares,
        attributions=attributions,
        frames={
            category: {frame: weight * factors[category] for frame, weight in weights.items()}
            for category, weights in shares.frames.items()
        },
        # These calls count as allocation.
        memory_calls=shares.memory_calls * factors["allocation"],
        replicates=replicates / replicates.sum(axis=1, keepdims=True),
        per_process=per_process / per_process.sum(axis=1, keepdims=True),
        counts={key: stacks * factors[key[0]] for key, stacks in shares.counts.items()},
    )


def with_compile_share(shares: Shares, share: float, drawn: Floats) -> Shares:
    """The shares with compilations at another share, 0 to 1, and its replicates, shape ``(REPLICATES,)``."""
    at = HOST_CATEGORIES.index("compile")
    scaled = reweighted(shares, lambda attribution: attribution.category == "compile", share)
    rest = np.delete(scaled.replicates, at, axis=1)
    replicates = np.insert(rest / rest.sum(axis=1, keepdims=True) * (1.0 - drawn)[:, None], at, drawn, axis=1)
    return replace(scaled, replicates=replicates)


def _factor(category: str, shares: Shares, attributions: Mapping[Attribution, float]) -> float:
    before = shares.share(category) * shares.weight
    after = math.fsum(weight for attribution, weight in attributions.items() if attribution.category == category)
    return after / before if before else 1.0


def shares_of_time(
    attributions: Mapping[Attribution, float], frames: Mapping[str, Mapping[str, float]], spread: float
) -> Shares:
    """Shares of trace time.

    Args:
        attributions: ns per attribution.
        frames: ns per category and event name.
        spread: Relative standard deviation of each category's share.
    """
    known = dict(attributions) or {UNATTRIBUTED: 1.0}
    weights = np.zeros(len(HOST_CATEGORIES))
    for attribution, ns in known.items():
        weights[HOST_CATEGORIES.index(attribution.category)] += ns
    random = np.random.default_rng(_SEED)
    drawn = weights * np.exp(random.normal(0.0, spread, (REPLICATES, len(weights))))
    replicates = drawn / drawn.sum(axis=1, keepdims=True)
    return Shares("trace", sum(known.values()), known, frames, 0.0, replicates, np.empty((0, len(weights))), {})


def _draw(counts: Floats) -> Floats:
    """Replicates of the shares from counts, shape ``(processes, categories)``.

    Differences between processes include the sampling error of each process. The mean over processes has Student's t with one
    degree of freedom less than processes, drawn for all categories together so that they sum to 1. Few processes can agree by
    chance: where their spread is below that of the counts, the counts' spread is taken.
    """
    random = np.random.default_rng(_SEED)
    processes = len(counts)
    of_counts: Floats = random.dirichlet(counts.sum(axis=0) + 0.5, REPLICATES)
    if processes == 1:
        return of_counts
    per_process = counts / counts.sum(axis=1, keepdims=True)
    pooled = counts.sum(axis=0) / counts.sum()
    normal = random.normal(size=(REPLICATES, processes)) @ (per_process - per_process.mean(axis=0))
    chi_square = random.chisquare(processes - 1, (REPLICATES, 1))
    of_processes = pooled + normal / np.sqrt(processes * chi_square)
    wider = _width(of_processes) >= _width(of_counts)
    drawn = np.maximum(np.where(wider, of_processes, of_counts), 0.0)
    shares: Floats = drawn / drawn.sum(axis=1, keepdims=True)
    return shares


def draw_over_blocks(counts: Floats) -> Floats:
    """Replicates of the shares of one process from counts of stacks, shape ``(categories, blocks)``, no block empty.

    A Dirichlet variate is normalized gamma variates of the counts. Each count is divided by its dispersion, and its variate
    multiplied by it, which keeps the mean and multiplies the variance. Where all dispersions are 1, this is the posterior of
    ``_draw``; where they differ, counts that were only divided would change the shares themselves.
    """
    own = counts.sum(axis=1)
    if counts.shape[1] == 1:
        return _draw(own[None, :])
    dispersion = overdispersion([counts])
    drawn = np.random.default_rng(_SEED).gamma(own / dispersion + 0.5, dispersion, (REPLICATES, len(own)))
    shares: Floats = drawn / drawn.sum(axis=1, keepdims=True)
    return shares


def _width(replicates: Floats) -> Floats:
    low, high = np.quantile(replicates, [0.025, 0.975], axis=0)
    width: Floats = high - low
    return width
