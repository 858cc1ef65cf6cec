"""``sum_elements`` and ``row_col_sum``: implementations of sums, over sizes and along both axes."""

from __future__ import annotations

import itertools
import math
import os
from functools import partial

from scripts.reproduction.measuring import clock, profile
from scripts.reproduction.outcomes import Call, Part, RatioRow, TimeRow, Unit
from scripts.reproduction.published import NOTEBOOK, figures

# How many times faster rows are than columns: in PyTorch, in NumPy.
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
LARGEST = "25000x25000"


SUM_NS = {(each.variant, int(each.params.get("n", 10_000))): each.ns for each in figures("sum_elements")}
SUM_TIMES = [
    TimeRow(f"{variant}, n = {n:,}", NOTEBOOK, SUM_NS.get((variant, n)), f"{n}/{variant}")
    for n, variant in itertools.product(SUM_SIZES, SUM_VARIANTS)
]
ROW_COL_TIMES = [
    TimeRow(f"{each.variant}, {LARGEST}", NOTEBOOK, each.ns, f"{LARGEST}/{each.variant}")
    for each in figures("row_col_sum")
]
ROW_COL_RATIOS = [
    RatioRow(
        f"{library} rows over columns, {shape}",
        NOTEBOOK,
        published,
        f"{shape}/{library}_cols",
        f"{shape}/{library}_rows",
    )
    for shape, both in ROWS_FASTER_BY.items()
    for library, published in zip(("torch", "numpy"), both, strict=True)
]


def _sum_unit(n: int) -> Unit:
    calls = [Call(variant, f"sum_elements:{variant}", params={"n": str(n)}) for variant in SUM_VARIANTS]
    return Unit(str(n), partial(clock, calls, 0))


def _row_col_params(shape: str) -> dict[str, str]:
    rows, cols = shape.split("x")
    return {"rows": rows, "cols": cols}


def _row_col_unit(shape: str) -> Unit:
    calls = [Call(each, f"row_col_sum:{each}", params=_row_col_params(shape)) for each in ROW_COL_VARIANTS]
    matrix_bytes = 4 * math.prod(int(each) for each in shape.split("x"))
    return Unit(shape, partial(clock, calls, round(1.2 * matrix_bytes * (os.cpu_count() or 1))))


def _row_col_profiles() -> tuple[Unit, ...]:
    sides = itertools.product(("100x100", "10000x10000"), ("torch_rows", "torch_cols"))
    calls = [Call(f"{side}-{shape}", f"row_col_sum:{side}", params=_row_col_params(shape)) for shape, side in sides]
    return tuple(Unit(f"profile-{call.name}", partial(profile, call)) for call in calls)


PARTS = (
    Part("sum_elements", tuple(map(_sum_unit, SUM_SIZES)), SUM_TIMES),
    Part("row_col_sum", (*map(_row_col_unit, ROWS_FASTER_BY), *_row_col_profiles()), ROW_COL_TIMES, ROW_COL_RATIOS),
)
