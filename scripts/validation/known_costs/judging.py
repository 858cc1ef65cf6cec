"""Budgets with a cost less those without, held against the difference of the bare wall times."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from overhead_lens.budget.make import Budget, Evidence, make_budget
from overhead_lens.budget.wall import undisturbed
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.difference import compare_budgets
from overhead_lens.instruments.page_faults.record import PageFaults
from overhead_lens.instruments.samples.record import Samples
from overhead_lens.stats.distributions import t_quantile
from overhead_lens.stats.shift import paired_shift
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import Classifier, default_classifier
from scripts.validation.known_costs.bench import Readings, measure
from scripts.validation.known_costs.cell import Cell
from scripts.validation.known_costs.sites import RULES, Site

# What a normal variable exceeds, either way, in 5 % of cases.
_NORMAL = 1.96


def judge_site(site: Site, costs_ns: Sequence[int], seconds: float) -> list[Cell]:
    """Measure a site at every cost it can take and judge each cell."""
    possible = [cost_ns for cost_ns in costs_ns if site.least_ns <= cost_ns <= site.most_ns]
    if not possible:
        return []
    readings, meta = measure(site, possible, seconds)
    every = (stack for each in readings.values() for stacks in each.stacks for stack in stacks)
    classifier = default_classifier(RULES).fitted(every)
    budgets = {cost_ns: budget_of(site, each, meta, classifier) for cost_ns, each in readings.items()}
    return [
        judge(site, cost_ns, (readings[0], readings[cost_ns]), (budgets[0], budgets[cost_ns])) for cost_ns in possible
    ]


def budget_of(site: Site, readings: Readings, meta: CaptureMeta, classifier: Classifier) -> Budget:
    """The product's budget of what was measured at one cost."""
    evidence = Evidence(
        name=site.name,
        meta=meta,
        clock=pd.DataFrame(readings.rows),
        samples=Samples(readings.stacks),
        page_faults=PageFaults(readings.page_faults),
    )
    return make_budget(evidence, classifier)


def judge(site: Site, cost_ns: int, measured: tuple[Readings, Readings], budgets: tuple[Budget, Budget]) -> Cell:
    """Hold the difference of two budgets, without and with a cost, against the difference of the bare times."""
    without, injected = measured
    paired = pd.DataFrame(
        {
            "process": [row["process"] for row in injected.rows],
            "reference_ns": [
                max(old["reference_ns"], new["reference_ns"])
                for old, new in zip(without.rows, injected.rows, strict=True)
            ],
            "wall_ns": [
                new.get("steady_ns", new["wall_ns"]) / new["calls"]
                - old.get("steady_ns", old["wall_ns"]) / old["calls"]
                for old, new in zip(without.rows, injected.rows, strict=True)
            ],
        }
    )
    bare = paired_shift(undisturbed(paired).groupby("process")["wall_ns"].median().to_numpy())
    old, new = ({each.category: each.ns for each in budget.breakdown.host} for budget in budgets)
    moved = {name: new[name] - old[name] for name in old}
    other = max((name for name in moved if name != site.category), key=lambda name: abs(moved[name]))
    samples = (stack_count(without), stack_count(injected))
    delta = compare_budgets(*budgets)
    sizes = {change.category: change.size_ns for change in delta.host}
    return Cell(
        site.name,
        cost_ns,
        bare.ns,
        bare.interval(),
        site.category,
        max(moved, key=lambda name: abs(moved[name])),
        moved[site.category],
        sampling_error(budgets, samples, site.category),
        other,
        moved[other],
        sampling_error(budgets, samples, other),
        samples,
        delta.blame[0] if delta.blame else None,
        sizes[delta.blame[0]] if delta.blame else 0,
        max((sizes[name] for name in delta.blame[1:]), key=abs, default=0),
    )


def sampling_error(budgets: Sequence[Budget], samples: Sequence[int], category: str) -> float:
    """95 % half-width in ns of the difference of a category between two budgets, if their walls were exact.

    It is what the movements of the processes, each of which was sampled on both sides, differ by (Student's t), or what so many
    stacks allow where that is more: stacks of one process need not be independent (a compilation gives several in a row), but
    processes are.
    """
    old_ns, new_ns = (
        budget.process_shares[:, HOST_CATEGORIES.index(category)] * budget.breakdown.wall.ns for budget in budgets
    )
    shares = [float(ns.mean()) / budget.breakdown.wall.ns for ns, budget in zip((old_ns, new_ns), budgets, strict=True)]
    of_counts = math.hypot(
        *(
            _NORMAL * math.sqrt(share * (1 - share) / count) * budget.breakdown.wall.ns
            for share, count, budget in zip(shares, samples, budgets, strict=True)
        )
    )
    moved_ns = new_ns - old_ns
    processes = len(moved_ns)
    of_processes = t_quantile(0.025, processes - 1) * float(moved_ns.std(ddof=1)) / math.sqrt(processes)
    return max(of_counts, of_processes)


def stack_count(readings: Readings) -> int:
    """How many stacks the readings hold."""
    return sum(stack.count for stacks in readings.stacks for stack in stacks)
