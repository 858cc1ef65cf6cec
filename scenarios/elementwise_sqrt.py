"""NumPy's square root row by row, then stacked, against one call on the whole array.

An answer in the forum thread "Batching Question" (discuss.pytorch.org, topic 102632) gives it to show that the price of
a loop is not PyTorch's own; no times were printed. A row of 100 elements is far less work than a NumPy call: most of
``loop`` is the interpreter, the call and the allocation of each row's result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from overhead_lens.scenario import Scenario, Work

Array = npt.NDArray[Any]
CHECKED_ELEMENTS = 100_000


@dataclass(frozen=True)
class Params:
    """The shape and type of the array."""

    rows: int = 1000
    cols: int = 100
    dtype: Literal["float32", "float64"] = "float64"
    device: Literal["cpu"] = "cpu"

    def __post_init__(self) -> None:
        if self.rows < 1 or self.cols < 1:
            raise ValueError(f"rows and cols must be at least 1, not {self.rows} and {self.cols}")


def inputs(params: Params) -> tuple[Array]:
    return (np.random.default_rng(0).random((params.rows, params.cols)).astype(params.dtype),)


def loop(array: Array) -> Array:
    return np.stack([np.sqrt(row) for row in array])


def whole(array: Array) -> Array:
    return np.sqrt(array)


def check(params: Params, arguments: tuple[Array], output: Array) -> None:
    """Up to 100,000 elements, evenly spaced, against math.sqrt within one rounding to the dtype."""
    (array,) = arguments
    if output.shape != array.shape or output.dtype != array.dtype:
        raise ValueError(f"elementwise_sqrt: expected {array.dtype} {array.shape}, got {output.dtype} {output.shape}")
    eps = float(np.finfo(array.dtype).eps)
    sample = np.linspace(0, array.size - 1, min(array.size, CHECKED_ELEMENTS)).astype(np.int64)
    for position, value, got in zip(
        sample.tolist(), array.ravel()[sample].tolist(), output.ravel()[sample].tolist(), strict=True
    ):
        expected = math.sqrt(value)
        if not abs(got - expected) <= eps * expected:
            raise ValueError(
                f"elementwise_sqrt: element {position % params.cols} of row {position // params.cols}: "
                f"expected {expected!r}, got {got!r}"
            )


def work(params: Params) -> Work:
    """A square root counts as one operation."""
    elements = params.rows * params.cols
    return Work(units=params.rows, flops=elements, bytes=2 * elements * np.dtype(params.dtype).itemsize)


SCENARIO = Scenario(
    name="elementwise_sqrt",
    summary="NumPy square root, row by row then stacked or in one call; per row",
    source='answer to the forum question "Batching Question", discuss.pytorch.org topic 102632',
    params=Params,
    inputs=inputs,
    variants={"loop": loop, "whole": whole},
    check=check,
    work=work,
)
