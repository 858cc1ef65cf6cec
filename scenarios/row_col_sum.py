"""The sums of a matrix's rows (dim 1) against those of its columns (dim 0), in PyTorch and in NumPy.

From the notebook of the ``sum_elements`` scenario. "Rows faster by", PyTorch / NumPy: 25000x25000 3.58 / 1.02;
10000x10000 1.79 / 0.99; 1000x1000 1.13 / 0.73; 100x100 0.92 / 1.01; 100000x100 2.18 / 1.04; 100x100000 1.60 / 0.94.
Both read the same memory once: a difference that overhead does not explain belongs to the kernel's access pattern.

The same notebook also times a GPU without waiting for it and so prints the price of a launch (an implied 40 TB/s).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch

from overhead_lens.scenario import Scenario, Work

try:
    import numpy as np
except ImportError:  # The PyTorch variants do without.
    np = None  # type: ignore[assignment]

CHECKED_SUMS = 1000


@dataclass(frozen=True)
class Params:
    """The shape and type of the matrix, which is stored row by row."""

    rows: int = 1000
    cols: int = 1000
    dtype: Literal["float32", "float64"] = "float32"
    device: Literal["cpu"] = "cpu"

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1:
            raise ValueError(f"rows and cols must be at least 1, not {self.rows} and {self.cols}")


def inputs(params: Params) -> tuple[torch.Tensor, Any]:
    """The matrix as a tensor, and as a NumPy array of the same memory: each variant uses its own."""
    matrix = torch.randn(params.rows, params.cols, dtype=getattr(torch, params.dtype))
    return matrix, _WithoutNumpy() if np is None else matrix.numpy()


def torch_rows(matrix: torch.Tensor, _array: Any) -> torch.Tensor:
    return matrix.sum(dim=1)


def torch_cols(matrix: torch.Tensor, _array: Any) -> torch.Tensor:
    return matrix.sum(dim=0)


def numpy_rows(_matrix: torch.Tensor, array: Any) -> Any:
    return array.sum(axis=1)


def numpy_cols(_matrix: torch.Tensor, array: Any) -> Any:
    return array.sum(axis=0)


class _WithoutNumpy:
    def sum(self, **_: int) -> Any:
        raise ModuleNotFoundError("the numpy variants need NumPy, which this interpreter does not have")


def check(params: Params, arguments: tuple[torch.Tensor, Any], output: Any) -> None:
    """Up to 1000 sums, evenly spaced, against math.fsum: of the rows if those match, else of the columns.

    Which of the two was asked for shows in the number of sums, except that a square matrix's may be either.
    """
    matrix, _ = arguments
    sums = [float(value) for value in output]
    wrong = [
        _first_wrong(name, lines, sums)
        for name, lines in (("row", matrix), ("column", matrix.T))
        if len(lines) == len(sums)
    ]
    if not wrong:
        raise ValueError(f"row_col_sum: expected {params.rows} or {params.cols} sums, got {len(sums)}")
    if all(wrong):
        raise ValueError(f"row_col_sum: {' or '.join(each for each in wrong if each)}")


def _first_wrong(name: str, lines: torch.Tensor, sums: list[float]) -> str | None:
    """The first sum that is off by more than about sqrt(k) roundings of its k magnitudes."""
    count, length = lines.shape
    rounding = torch.finfo(lines.dtype).eps * (1 + length**0.5)
    checked = min(count, CHECKED_SUMS)
    for position in (index * (count - 1) // max(1, checked - 1) for index in range(checked)):
        line = lines[position].tolist()
        expected = math.fsum(line)
        if not abs(sums[position] - expected) <= rounding * math.fsum(map(abs, line)):
            return f"{name} {position}: expected {expected!r}, got {sums[position]!r}"
    return None


def work(params: Params) -> Work:
    """Work of summing rows, each of which takes one addition less than it has elements; columns differ by rows - cols."""
    elements = params.rows * params.cols
    itemsize = getattr(torch, params.dtype).itemsize
    return Work(units=elements, flops=elements - params.rows, bytes=(elements + params.rows) * itemsize)


SCENARIO = Scenario(
    name="row_col_sum",
    summary="sums of a matrix's rows or columns with PyTorch or NumPy; per element",
    source="ZOSIA 2026 talk notebook, github.com/igorjakus/zosia2026_talk",
    params=Params,
    inputs=inputs,
    variants={
        "torch_rows": torch_rows,
        "torch_cols": torch_cols,
        "numpy_rows": numpy_rows,
        "numpy_cols": numpy_cols,
    },
    check=check,
    work=work,
)
