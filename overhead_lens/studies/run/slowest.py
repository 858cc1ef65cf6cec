"""Says why the slowest steps took longer than others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from overhead_lens.studies.run.stored import Compilation

_MOST = 5
# Times the median.
SLOW = 2.0
# A cause is reported from this share of the step's excess over the median.
_EXPLAINS = 0.3
_FAULT_NS = 500
# Another program has the core for some ms at a time; a container that has used up its quota waits for 100.
_SWITCH_NS = 100_000_000
_REASON_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Slow:
    """A step that took more than twice the median, and why."""

    step: int
    wall_ns: int
    because: str


def slowest_steps(bare: pd.DataFrame, compilations: Sequence[Compilation], first: int = 0) -> tuple[Slow, ...]:
    """Steps that took more than twice the median, and more than the mean, slowest first; they count from ``first``.

    ``bare``: ``number``, ``begin_ns``, ``end_ns``, ``ns``, ``is_counted`` and counters; ``compilations`` are by the same clock.
    """
    usual = bare.median()
    slow = bare[bare["ns"] > max(SLOW * usual["ns"], bare["ns"].mean())].nlargest(_MOST, "ns")
    return tuple(
        Slow(int(row["number"]) + first, int(row["ns"]), _because(row, usual, compilations))
        for _, row in slow.iterrows()
    )


def _because(row: pd.Series[float], usual: pd.Series[float], compilations: Sequence[Compilation]) -> str:
    """The largest of the causes that explain at least 30 % of the extra time."""
    if not row["is_counted"]:
        return "unknown: the counters were not read when it began"
    extra_ns = row["ns"] - usual["ns"]
    more = row - usual
    causes = {
        "compile": more["compile_ns"],
        "garbage collection": more["gc_ns"],
        "waiting for data": more["data_ns"],
        "page faults": min(more["faults"] * _FAULT_NS, extra_ns),
    }
    cause, ns = max(causes.items(), key=lambda item: item[1])
    if ns < _EXPLAINS * extra_ns:
        return _by_processor(row, more, extra_ns)
    if cause == "compile":
        return _compiled(row, compilations)
    return f"page faults ({row['faults']:,.0f})" if cause == "page faults" else cause


def _by_processor(row: pd.Series[float], more: pd.Series[float], extra_ns: float) -> str:
    if not row["user_ns"] and not row["system_ns"]:
        return "unknown: steps this short are not counted in detail"
    if more["user_ns"] + more["system_ns"] > (1 - _EXPLAINS) * extra_ns:
        return "it computed longer"
    if more["switches"] * _SWITCH_NS >= _EXPLAINS * extra_ns:
        return f"a neighbour on the core ({row['switches']:,.0f} involuntary switches)"
    return "it was blocked: not running, and nothing took its core"


def _compiled(row: pd.Series[float], compilations: Sequence[Compilation]) -> str:
    reasons = [
        compilation.reason
        for compilation in compilations
        if row["begin_ns"] <= compilation.end_ns <= row["end_ns"] and compilation.reason
    ]
    if not reasons:
        return "compilation"
    reason = " ".join(reasons[0].split())
    return f"recompilation: {reason[:_REASON_WIDTH]}"
