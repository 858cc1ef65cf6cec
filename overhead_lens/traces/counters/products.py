"""Rates of matrix products: floating-point operations from the shapes of operators, time from the kernels they launched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.readers.kineto.work import MOST_PRODUCTS
from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import where
from overhead_lens.traces.counters.model import ProductRate
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.launches import Linked, launching_operators
from overhead_lens.traces.timeline import sum_by

_FIRST = {"aten::mm": 0, "aten::bmm": 0, "aten::_scaled_mm": 0, "aten::addmm": 1, "aten::baddbmm": 1}
"""Place of the first of the two factors among the arguments."""

_MOST = 30
_MOST_FLOP = 1 << 62
_MATRIX, _BATCH = 2, 3


class _Shape(NamedTuple):
    batch: int
    rows: int
    inner: int
    columns: int

    @property
    def flop(self) -> int:
        return 2 * self.batch * self.rows * self.inner * self.columns

    def __str__(self) -> str:
        sizes = self[1:] if self.batch == 1 else self
        return " x ".join(map(str, sizes))


def product_rates(trace: Trace, host: HostEvents, linked: Linked) -> tuple[tuple[ProductRate, ...], str]:
    """Matrix products by operator, shape and type, the longest first; and why there are none, if there is a reason to say."""
    candidates = np.flatnonzero(where(trace.columns["name"], torch_names.PRODUCTS.__contains__))
    if not len(candidates) or not len(linked.rows):
        return (), ""
    if len(candidates) > MOST_PRODUCTS:
        return (), (
            f"rates of matrix products are left out: there are {len(candidates):,} of them, "
            f"and shapes are read of {MOST_PRODUCTS:,} at most"
        )
    device_ns = _device_ns(trace, host, linked, candidates)
    rows = candidates[device_ns > 0]
    taken: defaultdict[tuple[str, _Shape, str], list[int]] = defaultdict(list)
    name = trace.columns["name"]
    codes = name.codes[rows].tolist()
    for code, ns, arguments in zip(
        codes, device_ns[device_ns > 0].tolist(), trace.arguments(rows.tolist()), strict=True
    ):
        operator = str(name.categories[code])
        shape = _shape(arguments, _FIRST[operator])
        if shape is not None and shape.flop < _MOST_FLOP:
            taken[operator, shape, _dtype(arguments, _FIRST[operator])].append(ns)
    made = [_rate(*key, times) for key, times in taken.items()]
    return tuple(sorted(made, key=lambda one: -one.device_ns)[:_MOST]), ""


def _device_ns(trace: Trace, host: HostEvents, linked: Linked, candidates: Ints) -> Ints:
    """Device time of what each of the operators launched, inside of no further operator."""
    operator = launching_operators(host, linked.launch)
    known = operator >= 0
    spent = sum_by(operator[known], trace.columns["dur_ns"][linked.rows[known]], len(trace.columns["name"]))
    return spent[candidates]


def _shape(arguments: Mapping[str, Any], first: int) -> _Shape | None:
    dims = arguments.get("Input Dims")
    if not isinstance(dims, list) or len(dims) < first + 2:
        return None
    one, other = dims[first], dims[first + 1]
    if not _is_shape(one) or not _is_shape(other) or len(one) != len(other):
        return None
    strides = arguments.get("Input Strides")
    if isinstance(strides, list) and [] in strides[first : first + 2]:
        return None  # sparse: it has the sizes of the whole matrix and no strides (torch/csrc/profiler/collection.cpp)
    if len(one) == _MATRIX and one[1] == other[0]:
        return _Shape(1, one[0], one[1], other[1])
    if len(one) == _BATCH and one[0] == other[0] and one[2] == other[1]:
        return _Shape(one[0], one[1], one[2], other[2])
    return None


def _is_shape(dims: Any) -> bool:
    return isinstance(dims, list) and all(type(size) is int and 0 <= size < 1 << 31 for size in dims)


def _dtype(arguments: Mapping[str, Any], first: int) -> str:
    types = arguments.get("Input type")
    return str(types[first]) if isinstance(types, list) and len(types) > first else ""


def _rate(operator: str, shape: _Shape, dtype: str, times_ns: list[int]) -> ProductRate:
    device_ns, flop = sum(times_ns), shape.flop * len(times_ns)
    return ProductRate(operator, str(shape), dtype, len(times_ns), flop, device_ns, flop / device_ns)
