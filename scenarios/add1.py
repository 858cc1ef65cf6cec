"""``x + 1`` on a tensor so small that the arithmetic is a few nanoseconds: what remains is the cost of the call.

The workload of "Micro-optimizations for the most micro of benchmarks" (dev-discuss.pytorch.org, topic 1836) and of
pytorch issue 122029. Eager spends its time in the dispatcher and in allocations: ``1`` is a Python number, which
becomes a tensor first. Compiled, nearly all of it is guards and the Python around one generated kernel.

The author times one element, this file ten: the same kernel, the same overhead. ``overhead-lens ladder`` times it under
``torch.inference_mode()``, which no parameter here sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from overhead_lens.scenario import Scenario, Work


@dataclass(frozen=True)
class Params:
    """The tensor; ``requires_grad`` has autograd record the addition (there is no backward pass)."""

    size: int = 10
    dtype: Literal["float32", "float64", "float16", "bfloat16"] = "float32"
    device: Literal["cpu", "cuda"] = "cpu"
    requires_grad: bool = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"size must be at least 1, not {self.size}")


def inputs(params: Params) -> tuple[torch.Tensor]:
    dtype = getattr(torch, params.dtype)
    return (torch.randn(params.size, dtype=dtype, device=params.device, requires_grad=params.requires_grad),)


def add1(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def check(_params: Params, arguments: tuple[torch.Tensor], output: torch.Tensor) -> None:
    """Every element against Python's float addition, within one rounding to the dtype."""
    (x,) = arguments
    if output.shape != x.shape or output.dtype != x.dtype:
        raise ValueError(f"add1: expected {x.dtype} {tuple(x.shape)}, got {output.dtype} {tuple(output.shape)}")
    eps = torch.finfo(x.dtype).eps
    for position, (value, got) in enumerate(zip(x.tolist(), output.tolist(), strict=True)):
        expected = value + 1.0
        if not abs(got - expected) <= eps * abs(expected):
            raise ValueError(f"add1: element {position}: expected {expected!r}, got {got!r}")


def work(params: Params) -> Work:
    """One call is the unit: the overhead does not depend on the number of elements."""
    itemsize = getattr(torch, params.dtype).itemsize
    return Work(units=1, flops=params.size, bytes=2 * params.size * itemsize)


SCENARIO = Scenario(
    name="add1",
    summary="x + 1 on a tiny tensor: the fixed overhead of one call",
    source="dev-discuss.pytorch.org topic 1836 and pytorch issue 122029",
    params=Params,
    inputs=inputs,
    variants={"add1": add1},
    check=check,
    work=work,
)
