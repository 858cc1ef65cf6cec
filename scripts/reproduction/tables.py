"""The tables: rows of every part, published and measured figures beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from scripts.reproduction import add1, fusion, loops, sums
from scripts.reproduction.outcomes import Measured, Outcome, Outcomes, Part, RatioRow, TimeRow, outcome_of, ratio
from scripts.reproduction.storing import Stored
from scripts.results import Cell, Claim, Column, Origin, Result, columns_of

PARTS: tuple[Part, ...] = (*add1.PARTS, *loops.PARTS, *sums.PARTS, *fusion.PARTS)

METHOD = (
    "Each figure is of fresh processes: the median over processes of their median block, with a 95 % interval from a bootstrap "
    "over processes. Published figures are of other hardware and mostly of older versions: a ratio is not a pass mark. "
    "A figure is disturbed if its interval spans more than a factor of two, and nothing is concluded from it."
)

_of = partial(Claim, method=METHOD, command="python -m scripts.reproduction")
TIMES = _of(
    claim="published-times",
    question="How long do calls take here whose times others have published?",
    columns=columns_of(
        "workload | call | source | published [ns] | here [ns] | low [ns] | high [ns] | here over published | remark"
    ),
)
RATIOS = _of(
    claim="published-ratios",
    question="How many times faster is one call than another, published and here?",
    columns=columns_of(
        "workload | ratio of times | source | published | here | low | high | here over published | remark"
    ),
)
BUDGETS = _of(
    claim="published-budgets",
    question="Where does the time of the published workloads go here?",
    columns=(*columns_of("workload | call | wall [ns]"), *(Column(name, "ns") for name in HOST_CATEGORIES)),
)
TRACES = _of(
    claim="published-traces",
    question="How far is a corrected trace from the bare call, in the published workloads?",
    columns=columns_of(
        "workload | call | corrected trace less the bare call of its process [share] | "
        "less the wall of other processes [share] | wall, low [share] | wall, high [share]"
    ),
)
CLAIMS = (TIMES, RATIOS, BUDGETS, TRACES)

NOTES = {
    TIMES: [fusion.ON_A_GPU],
    RATIOS: [fusion.ON_A_GPU],
    TRACES: ["RL-Scope (MLSys 2021) corrects totals to within -16.8 % .. +10.9 % of the uninstrumented run."],
}


def results_of(stored: Mapping[str, Stored]) -> Iterator[Result]:
    """All tables that anything was measured for."""
    origin = _joined([each for part in stored.values() for each in part.origins])
    if origin is None:
        return
    rows: dict[Claim, list[list[Cell]]] = {claim: [] for claim in CLAIMS}
    for part in PARTS:
        outcomes = stored[part.name].outcomes
        rows[TIMES] += [time_row(part.name, row, outcomes) for row in part.times]
        rows[RATIOS] += [ratio_row(part.name, row, outcomes) for row in part.ratios]
        rows[BUDGETS] += budget_rows(part.name, outcomes)
        rows[TRACES] += trace_rows(part.name, outcomes)
    notes = {**NOTES, BUDGETS: [note for part in PARTS for note in part.notes(stored[part.name].outcomes)]}
    for claim in CLAIMS:
        yield claim.answered(rows[claim], notes.get(claim, ()), origin)


def _joined(origins: list[Origin]) -> Origin | None:
    """Where all of it was measured, and when the last of it; of several revisions none, and None of nothing."""
    if not origins:
        return None
    machine, torch, python = (
        "; ".join(sorted({getattr(each, name) for each in origins})) for name in ("machine", "torch", "python")
    )
    revisions = {each.revision for each in origins}
    return Origin(
        measured_on=max(each.measured_on for each in origins),
        machine=machine,
        torch=torch,
        python=python,
        revision=revisions.pop() if len(revisions) == 1 else "",
    )


def time_row(workload: str, row: TimeRow, outcomes: Outcomes) -> list[Cell]:
    """A row of ``TIMES``."""
    here, over = outcome_of(outcomes, row.here), None
    if isinstance(here, Measured) and row.published_ns is not None:
        over = significant(here.ns / row.published_ns)
    return [workload, row.label, row.source, row.published_ns, *_figure(here), over, _remark(here)]


def ratio_row(workload: str, row: RatioRow, outcomes: Outcomes) -> list[Cell]:
    """A row of ``RATIOS``."""
    slow, fast = outcome_of(outcomes, row.slow), outcome_of(outcomes, row.fast)
    published = None if row.published is None else significant(row.published)
    cells: list[Cell] = [workload, row.label, row.source, published]
    if not isinstance(slow, Measured) or not isinstance(fast, Measured):
        return [*cells, None, None, None, None, _remark(fast if isinstance(slow, Measured) else slow)]
    here = ratio(slow, fast)
    over = None if row.published is None else significant(here.value / row.published)
    disturbed = slow.is_disturbed or fast.is_disturbed
    return [*cells, *map(significant, (here.value, here.low, here.high)), over, "disturbed" if disturbed else None]


def budget_rows(workload: str, outcomes: Outcomes) -> list[list[Cell]]:
    """Rows of ``BUDGETS``: the calls that were profiled."""
    return [
        [workload, name, measured.ns, *(measured.host_ns.get(category, 0.0) for category in HOST_CATEGORIES)]
        for name, measured in _profiled(outcomes)
    ]


def trace_rows(workload: str, outcomes: Outcomes) -> list[list[Cell]]:
    """Rows of ``TRACES``: the calls whose trace was corrected in a process that was timed bare as well."""
    return [
        [
            workload,
            name,
            measured.trace_bare_share,
            measured.trace_residual_share,
            *(round(bound_ns / measured.ns - 1, 4) for bound_ns in (measured.low_ns, measured.high_ns)),
        ]
        for name, measured in _profiled(outcomes)
        if measured.trace_bare_share is not None
    ]


def significant(value: float) -> float:
    """The value to three digits."""
    return float(f"{value:.3g}")


def _profiled(outcomes: Outcomes) -> list[tuple[str, Measured]]:
    return [
        (name.split("/")[1], outcome)
        for name, outcome in outcomes.items()
        if isinstance(outcome, Measured) and outcome.host_ns
    ]


def _figure(outcome: Outcome) -> list[Cell]:
    if not isinstance(outcome, Measured):
        return [None, None, None]
    return [round(ns, 1) for ns in (outcome.ns, outcome.low_ns, outcome.high_ns)]


def _remark(outcome: Outcome) -> str | None:
    if isinstance(outcome, str):
        return outcome
    return "disturbed" if outcome.is_disturbed else None
