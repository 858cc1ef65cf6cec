"""The sum of a float32 array in six ways: where fixed overhead ends and throughput begins.

From a conference talk's notebook (github.com/igorjakus/zosia2026_talk): numba wins at 100 elements, NumPy at 10,000,
PyTorch above, because each implementation costs ``overhead + n / rate``. As there, every way starts from a NumPy array
and gives a number, so ``torch`` also pays for ``from_numpy`` and ``item``. The loops take NumPy scalars out of the
array, which is most of their time; ``numba`` compiles that very loop, ``numpy_numba`` a call of NumPy's sum.
Both are compiled by their first call, which belongs to the warm-up.

From 2**24 on a float32 total no longer grows by values below one: beyond some 34 million elements the variants that
add into one float32 (``builtin``, ``python`` and ``numpy_numba`` with NumPy 2) are wrong, and the check says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from overhead_lens.scenario import Scenario, Work

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Params:
    """The length and type of the array."""

    n: int = 10_000
    dtype: Literal["float32", "float64"] = "float32"
    device: Literal["cpu"] = "cpu"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n must be at least 1, not {self.n}")


def inputs(params: Params) -> tuple[Array]:
    return (np.random.default_rng(0).random(params.n).astype(params.dtype),)


def torch_sum(array: Array) -> float:
    total: float = torch.from_numpy(array).sum().item()
    return total


def numpy_sum(array: Array) -> Any:
    return np.sum(array)


def builtin_sum(array: Array) -> Any:
    return sum(array)


def python_sum(array: Array) -> Any:
    total = 0.0
    for value in array:
        total += value
    return total


def numpy_numba_sum(array: Array) -> Any:
    return _compiled_call(array)


def numba_sum(array: Array) -> Any:
    return _compiled_loop(array)


# Each of these two is replaced by its compiled form on its first call: later calls look nothing up, and an interpreter
# without numba can still run the other variants.
def _compile_call(array: Array) -> Any:
    global _compiled_call  # noqa: PLW0603
    _compiled_call = _njit(numpy_sum)
    return _compiled_call(array)


def _compile_loop(array: Array) -> Any:
    global _compiled_loop  # noqa: PLW0603
    _compiled_loop = _njit(python_sum)
    return _compiled_loop(array)


_compiled_call: Callable[[Array], Any] = _compile_call
_compiled_loop: Callable[[Array], Any] = _compile_loop


def _njit(function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    try:
        import numba
    except ImportError as error:
        raise ModuleNotFoundError(f"the numba variants need numba in this interpreter ({error})") from error
    compiled: Callable[[Array], Any] = numba.njit(function)
    return compiled


def check(params: Params, arguments: tuple[Array], output: float) -> None:
    """Against math.fsum.

    In whatever order n numbers are added, the error is about sqrt(n) roundings of the sum of their magnitudes (Higham
    and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019); the factor two is for the worst runs.
    """
    (array,) = arguments
    expected = math.fsum(array.tolist())
    rounding = float(np.finfo(array.dtype).eps) / 2
    if not abs(float(output) - expected) <= 2 * rounding * params.n**0.5 * math.fsum(np.abs(array).tolist()):
        raise ValueError(f"sum_elements: expected {expected!r}, got {float(output)!r}")


def work(params: Params) -> Work:
    itemsize = np.dtype(params.dtype).itemsize
    return Work(units=params.n, flops=params.n - 1, bytes=(params.n + 1) * itemsize)


SCENARIO = Scenario(
    name="sum_elements",
    summary="sum of an array with PyTorch, NumPy, numba or Python; per element",
    source="ZOSIA 2026 talk notebook, github.com/igorjakus/zosia2026_talk",
    params=Params,
    inputs=inputs,
    variants={
        "torch": torch_sum,
        "numpy": numpy_sum,
        "numpy_numba": numpy_numba_sum,
        "numba": numba_sum,
        "builtin": builtin_sum,
        "python": python_sum,
    },
    check=check,
    work=work,
)
