"""Results as pandas tables: one row per category, rung or size. Times are ns, their units in the columns' names."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from overhead_lens.budget.model import Breakdown
from overhead_lens.comparison.model import Delta
from overhead_lens.studies.advise.analysis import Advice
from overhead_lens.studies.attach.analysis import ProcessBudget
from overhead_lens.studies.ladder.analysis import Ladder
from overhead_lens.studies.run.analysis import RunBudget
from overhead_lens.studies.run.job import RunJob
from overhead_lens.studies.sweep.analysis import Sweep
from overhead_lens.traces.model import TraceAnalysis


def host_table(budget: Breakdown | RunBudget) -> pd.DataFrame:
    """One row per category: ``ns``, ``low_ns``, ``high_ns``, ``share``, ``evidence``."""
    rows = [(each.category, each.ns, *each.ci95_ns, each.share, each.evidence) for each in budget.host]
    return _table(rows, "category", "ns", "low_ns", "high_ns", "share", "evidence")


def job_table(job: RunJob) -> pd.DataFrame:
    """One row per rank and category, as of ``host_table``; ``rank``."""
    table: pd.DataFrame = pd.concat([host_table(run).assign(rank=run.rank) for run in job.ranks])
    return table


def delta_table(delta: Delta) -> pd.DataFrame:
    """One row per category: ``delta_ns``, ``low_ns``, ``high_ns``, ``verdict``."""
    rows = [(change.category, change.delta_ns, *change.ci95_ns, change.verdict) for change in delta.host]
    return _table(rows, "category", "delta_ns", "low_ns", "high_ns", "verdict")


def ladder_table(ladder: Ladder) -> pd.DataFrame:
    """One row per rung: ``ns``, ``step_ns`` and its interval, NaN if it was not timed, and ``reason``."""
    rows = [
        (rung.name, rung.ns, rung.step_ns, *(rung.step_ci95_ns or (None, None)), rung.minor_faults, rung.reason)
        for rung in ladder.rungs
    ]
    return _table(rows, "rung", "ns", "step_ns", "step_low_ns", "step_high_ns", "minor_faults", "reason")


def advice_table(advice: Advice) -> pd.DataFrame:
    """One row per remedy: ``delta_ns`` and its interval, NaN if it was not measured, ``verdict``, ``output``, ``safety``."""
    rows = []
    for each in advice.remedies:
        saved = (each.wall.delta_ns, *each.wall.ci95_ns) if each.wall else (None, None, None)
        rows.append((each.remedy, *saved, each.verdict, each.output, each.safety))
    return _table(rows, "remedy", "delta_ns", "low_ns", "high_ns", "verdict", "output", "safety")


def sweep_table(sweep: Sweep) -> pd.DataFrame:
    """One row per variant and size: ``ns``, ``low_ns``, ``high_ns``, ``residual_share``."""
    rows = [
        (variant.name, point.size, point.ns, *point.ci95_ns, point.residual_share)
        for variant in sweep.variants
        for point in variant.points
    ]
    return _table(rows, "variant", "size", "ns", "low_ns", "high_ns", "residual_share")


def process_table(process: ProcessBudget) -> pd.DataFrame:
    """One row per thread and category: its ``thread``, ``process``, ``name``, ``ns``, ``low_ns``, ``high_ns``, ``share``.

    The times are scaled to the whole watch, of which the thread was there for ``seen_share``.
    """
    rows = [
        (each.category, of.thread, of.process, of.name, each.ns, *each.ci95_ns, each.share, of.seen_share)
        for of in process.threads
        for each in of.host
    ]
    return _table(rows, "category", "thread", "process", "name", "ns", "low_ns", "high_ns", "share", "seen_share")


def analysis_table(analysis: TraceAnalysis) -> pd.DataFrame:
    """One row per thread and category: ``thread``, ``ns``, ``share``."""
    rows = [
        (category.category, thread.name or thread.tid, category.ns, category.share)
        for thread in analysis.threads
        for category in thread.host
    ]
    return _table(rows, "category", "thread", "ns", "share")


def _table(rows: Sequence[tuple[object, ...]], index: str, *columns: str) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame.from_records(rows, columns=[index, *columns]).set_index(index)
    return table
