"""Budgets of made-up processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from overhead_lens.budget.make import Budget
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from tests.drawn.builders import breakdown

STACKS = 10_000_000


def budget(spread: float = 0.0, /, processes: int = 5, reference_ns: int = 700, **host_ns: int) -> Budget:
    """A budget whose processes differ with relative standard deviation ``spread``, each with shares of its own, all seen well."""
    made = breakdown(**host_ns)
    random = np.random.default_rng(sum(host_ns.values()))
    whole = np.array([float(each.ns) for each in made.host])
    host = np.maximum(whole * random.normal(1.0, spread, (processes, len(whole))), 0.0)
    walls = host.sum(axis=1)
    rows = [
        {"process": process, "block": block, "reference_ns": reference_ns, "call_ns": wall, "undisturbed": True}
        for process, wall in enumerate(walls.tolist())
        for block in range(4)
    ]
    blocks = pd.DataFrame(rows).assign(compilation=0)
    shares = np.divide(host, walls[:, None], out=np.zeros_like(host), where=walls[:, None] > 0)
    stacks = {
        (name, f"{name}_frame"): column for name, column in zip(HOST_CATEGORIES, (STACKS * shares).T) if column.any()
    }
    replicates = whole * random.normal(1.0, spread, (2_000, 1))
    frames = {name: {f"{name}_frame": float(ns)} for name, ns in host_ns.items()}
    return Budget(
        made, replicates.sum(axis=1), replicates, frames, blocks.assign(mean_ns=blocks["call_ns"]), shares, stacks
    )


def timed(found: Budget, call_ns: pd.Series, reference_ns: int | None = None) -> Budget:
    """The budget, its blocks having taken so long per call, and the reference loop beside them."""
    blocks = found.blocks.assign(call_ns=call_ns, mean_ns=call_ns)
    return replace(found, blocks=blocks if reference_ns is None else blocks.assign(reference_ns=reference_ns))
