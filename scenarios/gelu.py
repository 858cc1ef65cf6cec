"""``x * 0.5 * (1 + erf(x / 1.41421))`` on ten million floats: what fusing a chain of elementwise operations saves.

From the notebook of the ``sum_elements`` scenario: compiled is 3.39 times faster on a CPU. Eager runs five operations,
each of which writes a new temporary: the first touch of its pages is an allocation cost that no allocation event shows,
and can be a large part of what looks like kernel time. Compiled, one kernel reads ``x`` and writes the result once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch

from overhead_lens.scenario import Scenario, Work

CHECKED_ELEMENTS = 10_000


@dataclass(frozen=True)
class Params:
    """The tensor; ``requires_grad`` has autograd record the operations (there is no backward pass)."""

    n: int = 10_000_000
    dtype: Literal["float32", "float64", "float16", "bfloat16"] = "float32"
    device: Literal["cpu", "cuda"] = "cpu"
    requires_grad: bool = False

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n must be at least 1, not {self.n}")


def inputs(params: Params) -> tuple[torch.Tensor]:
    dtype = getattr(torch, params.dtype)
    return (torch.randn(params.n, dtype=dtype, device=params.device, requires_grad=params.requires_grad),)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1 + torch.erf(x / 1.41421))


def check(params: Params, arguments: tuple[torch.Tensor], output: torch.Tensor) -> None:
    """Up to 10,000 elements, evenly spaced, against math.erf.

    Vectorized error functions are good to about one rounding of 1, and 1 + erf cancels for negative x: the error is
    some roundings of x, not of the result. Below the smallest normal number, numbers are as far apart as at it.
    """
    (x,) = arguments
    if output.shape != x.shape or output.dtype != x.dtype:
        raise ValueError(f"gelu: expected {x.dtype} {tuple(x.shape)}, got {output.dtype} {tuple(output.shape)}")
    sample = torch.linspace(0, params.n - 1, min(params.n, CHECKED_ELEMENTS), dtype=torch.float64).long()
    values, results = (each.detach()[sample.to(each.device)].tolist() for each in (x, output))
    numbers = torch.finfo(x.dtype)
    for position, value, got in zip(sample.tolist(), values, results, strict=True):
        expected = value * 0.5 * (1 + math.erf(value / 1.41421))
        if not abs(got - expected) <= 4 * numbers.eps * max(abs(value), numbers.tiny):
            raise ValueError(f"gelu: element {position}: expected {expected!r}, got {got!r}")


def work(params: Params) -> Work:
    """Five operations an element; the error function counts as one."""
    itemsize = getattr(torch, params.dtype).itemsize
    return Work(units=params.n, flops=5 * params.n, bytes=2 * params.n * itemsize)


SCENARIO = Scenario(
    name="gelu",
    summary="GELU from five elementwise operations, for fusion; per element",
    source="ZOSIA 2026 talk notebook, github.com/igorjakus/zosia2026_talk",
    params=Params,
    inputs=inputs,
    variants={"gelu": gelu},
    check=check,
    work=work,
)
