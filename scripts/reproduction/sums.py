"""``sum_elements`` and ``row_col_sum``: implementations of sums, over sizes and along both axes."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence

from overhead_lens.stats.line_fit import Line, crossing, fit_line
from overhead_lens.units import format_ns
from scripts.reproduction.measuring import clock, profile
from scripts.reproduction.outcomes import (
    NOT_YET,
    Call,
    Measured,
    Outcome,
    Outcomes,
    Part,
    Unit,
    format_ratio,
    is_sound,
    outcome_of,
)
from scripts.reproduction.published import NOTEBOOK, scenario_published
from scripts.reproduction.wording import (
    RATIO_HEADER,
    TIME_HEADER,
    bandwidth_sentence,
    budget_sentence,
    here,
    paragraph,
    ratio_row,
    table,
    time_row,
)

ROWS_FASTER_BY = {
    "25000x25000": (3.58, 1.02),
    "10000x10000": (1.79, 0.99),
    "1000x1000": (1.13, 0.73),
    "100x100": (0.92, 1.01),
    "100000x100": (2.18, 1.04),
    "100x100000": (1.60, 0.94),
}
SUM_VARIANTS = ("torch", "numpy", "numpy_numba", "numba", "builtin", "python")
SUM_SIZES = (100, 10_000, 1_000_000, 10_000_000)
ROW_COL_VARIANTS = ("torch_rows", "torch_cols", "numpy_rows", "numpy_cols")


def render_sum(outcomes: Outcomes) -> list[str]:
    """Every implementation at every size, and the lines fitted to both."""
    published = {(each.variant, int(each.params.get("n", 10_000))): each for each in scenario_published("sum_elements")}
    measured = {
        (variant, n): outcome_of(outcomes, f"{n}/{variant}")
        for n, variant in itertools.product(SUM_SIZES, SUM_VARIANTS)
    }
    rows = []
    for n, variant in itertools.product(SUM_SIZES, SUM_VARIANTS):
        label, outcome = f"{variant}, n = {n:,}", measured[variant, n]
        figure = published.get((variant, n))
        cut_off = [label, NOTEBOOK, "cut off", here(outcome), ""]
        rows.append(cut_off if figure is None else time_row(label, NOTEBOOK, figure.ns, outcome))
    theirs = {v: [(n, published[v, n].ns) for n in SUM_SIZES if (v, n) in published] for v in SUM_VARIANTS}
    ours = {v: [(n, found.ns) for n in SUM_SIZES if is_sound(found := measured[v, n])] for v in SUM_VARIANTS}
    exact = {key: Measured(each.ns, each.ns, each.ns, 0) for key, each in published.items()}
    fastest = [[f"{n:,}", fastest_at(n, exact), fastest_at(n, measured)] for n in SUM_SIZES]
    header = ("n", "fastest published", "fastest here, as far as intervals tell")
    return [*table(TIME_HEADER, rows), *table(header, fastest), *lines_of_fits(theirs, ours)]


def lines_of_fits(
    theirs: Mapping[str, Sequence[tuple[int, float]]], ours: Mapping[str, Sequence[tuple[int, float]]]
) -> list[str]:
    """Overhead and rate of each implementation, published and here, and where the lines cross."""
    lines = {
        name: (fit_line(theirs[name]), fit_line(ours[name]))
        for name in ours
        if min(len(theirs[name]), len(ours[name])) > 1
    }
    rows = []
    for name, (their, our) in lines.items():
        # Without a point at which the overhead is most of the time, a fit says little about it.
        small = [min(n for n, _ in points[name]) == SUM_SIZES[0] for points in (theirs, ours)]
        overheads = [
            format_ns(line.overhead_ns) if known else "" for line, known in zip((their, our), small, strict=True)
        ]
        rates = [f"{1 / line.element_ns:.3g}" for line in (their, our)]
        worst = [f"{line.worst_share:.0%}" for line in (their, our)]
        rows.append([name, *overheads, *rates, format_ratio(their.element_ns / our.element_ns), *worst])
    header = (
        "fit",
        "overhead published",
        "here",
        "elements per ns published",
        "here",
        "here / published",
        "worst error",
        "here",
    )
    met = []
    for left, right in itertools.combinations(lines, 2):
        at = [crossing(lines[left][side], lines[right][side]) for side in (0, 1)]
        if any(at) and not {left, right} & {"builtin", "python"}:
            met.append([f"{left}, {right}", *(f"{n:,.0f}" if n else "none" for n in at)])
    from_small = [name for name in lines if theirs[name][0][0] == ours[name][0][0] == SUM_SIZES[0]]
    return [
        *table(header, rows),
        *table(("fitted lines cross at n", "published", "here"), met),
        *paragraph(_fit_sentence(lines, [name for name in from_small if lines[name][0].overhead_ns > 0])),
    ]


def fastest_at(n: int, outcomes: Mapping[tuple[str, int], Outcome]) -> str:
    """The implementations whose intervals reach down to where the fastest one's ends, by ``(implementation, n)``."""
    at = {name: each for (name, size), each in outcomes.items() if size == n and isinstance(each, Measured)}
    least_ns = min((each.high_ns for each in at.values()), default=0.0)
    return ", ".join(name for name, each in at.items() if each.low_ns <= least_ns) or NOT_YET


def _fit_sentence(lines: Mapping[str, tuple[Line, Line]], with_overhead: Sequence[str]) -> list[str]:
    if not lines or not with_overhead:
        return []
    overheads = {name: lines[name][1].overhead_ns / lines[name][0].overhead_ns for name in with_overhead}
    rates = {name: their.element_ns / our.element_ns for name, (their, our) in lines.items()}
    sentence = (
        f"Where overhead decides, {_range(overheads)} of the published overhead is paid here; "
        f"where throughput decides, {_range(rates)} of the published rate is reached."
    )
    return [sentence]


def _range(values: Mapping[str, float]) -> str:
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return f"{format_ratio(values[low])} ({low}) to {format_ratio(values[high])} ({high})"


def render_row_col(outcomes: Outcomes) -> list[str]:
    """Rows against columns, in PyTorch and in NumPy."""
    rows, compared, here_faster, there_faster = [], 0, 0, 0
    for shape, both in ROWS_FASTER_BY.items():
        for library, published in zip(("torch", "numpy"), both, strict=True):
            fast, slow = (outcome_of(outcomes, f"{shape}/{library}_{side}") for side in ("rows", "cols"))
            rows.append(ratio_row(f"{library} rows over columns, {shape}", NOTEBOOK, published, slow, fast))
            if library == "torch" and is_sound(fast) and is_sound(slow):
                compared += 1
                here_faster += slow.ns > fast.ns
                there_faster += published > 1
    figures = {each.variant: each.ns for each in scenario_published("row_col_sum")}
    largest = {variant: outcome_of(outcomes, f"25000x25000/{variant}") for variant in figures}
    times = [time_row(f"{name}, 25000x25000", NOTEBOOK, ns, largest[name]) for name, ns in figures.items()]
    profiled = [f"{side}-{shape}" for shape in ("100x100", "10000x10000") for side in ("torch_rows", "torch_cols")]
    sentences = [budget_sentence(f"`{name}`", outcome_of(outcomes, f"profile-{name}/{name}")) for name in profiled]
    bandwidth = bandwidth_sentence(4 * 25_000**2, figures, largest)
    count = (
        f"PyTorch's rows are the faster ones in {here_faster} of {compared} undisturbed shapes here, "
        f"published in {there_faster} of them."
    )
    return [*table(RATIO_HEADER, rows), *table(TIME_HEADER, times), *paragraph([count], bandwidth, *sentences)]


def _sum_unit(n: int) -> Unit:
    calls = [Call(variant, f"sum_elements:{variant}", params={"n": str(n)}) for variant in SUM_VARIANTS]
    return Unit(str(n), clock(calls))


def _row_col_params(shape: str) -> dict[str, str]:
    rows, cols = shape.split("x")
    return {"rows": rows, "cols": cols}


def _row_col_unit(shape: str) -> Unit:
    calls = [Call(each, f"row_col_sum:{each}", params=_row_col_params(shape)) for each in ROW_COL_VARIANTS]
    matrix_bytes = 4 * math.prod(int(each) for each in shape.split("x"))
    return Unit(shape, clock(calls, needed_bytes=round(1.2 * matrix_bytes * (os.cpu_count() or 1))))


def _row_col_profiles() -> tuple[Unit, ...]:
    sides = itertools.product(("100x100", "10000x10000"), ("torch_rows", "torch_cols"))
    calls = [Call(f"{side}-{shape}", f"row_col_sum:{side}", params=_row_col_params(shape)) for shape, side in sides]
    return tuple(Unit(f"profile-{call.name}", profile(call)) for call in calls)


PARTS = (
    Part("sum_elements", "`sum_elements`: six implementations", tuple(map(_sum_unit, SUM_SIZES)), render_sum),
    Part(
        "row_col_sum",
        "`row_col_sum`: rows over columns",
        (*map(_row_col_unit, ROWS_FASTER_BY), *_row_col_profiles()),
        render_row_col,
    ),
)
