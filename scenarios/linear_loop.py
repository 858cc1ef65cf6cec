"""One linear layer on many vectors: a Python loop over them against one batched call.

The forum question "Batching Question" (discuss.pytorch.org, topic 102632): ``nn.Linear(256, 256)`` on 10,000 vectors
is 77 times faster batched, on a CPU too; "what are all of the factors?" No absolute times were printed. Per vector the
loop pays for the interpreter, the view of a row, the dispatcher, the output's allocation and a matrix-vector product
that reads all of the weight from cache; the batched matrix product reads it once per block of vectors.

As asked, the layer's parameters require a gradient (``-p requires_grad=true``) and each result replaces the last. Here
the loop keeps its results in a list, so that they can be checked; its outputs therefore do not reuse one another's
memory. Compiling ``loop`` unrolls it: lower ``vectors`` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from overhead_lens.scenario import Scenario, Work


@dataclass(frozen=True)
class Params:
    """``features`` is both the length of a vector and of its result; ``requires_grad`` is that of the layer."""

    vectors: int = 10_000
    features: int = 256
    dtype: Literal["float32", "float64", "float16", "bfloat16"] = "float32"
    device: Literal["cpu", "cuda"] = "cpu"
    requires_grad: bool = False

    def __post_init__(self) -> None:
        if self.vectors < 1 or self.features < 1:
            raise ValueError(f"vectors and features must be at least 1, not {self.vectors} and {self.features}")


def inputs(params: Params) -> tuple[nn.Linear, torch.Tensor]:
    dtype = getattr(torch, params.dtype)
    linear = nn.Linear(params.features, params.features, dtype=dtype, device=params.device)
    linear.requires_grad_(params.requires_grad)
    return linear, torch.randn(params.vectors, params.features, dtype=dtype, device=params.device)


def loop(linear: nn.Linear, vectors: torch.Tensor) -> list[torch.Tensor]:
    return [linear(vector) for vector in vectors]


def batched(linear: nn.Linear, vectors: torch.Tensor) -> torch.Tensor:
    return linear(vectors)


def check(
    params: Params, arguments: tuple[nn.Linear, torch.Tensor], output: torch.Tensor | Sequence[torch.Tensor]
) -> None:
    """Every element against a float64 product.

    A sum of k rounded products is off by about sqrt(k) roundings of the sum of their magnitudes.
    """
    linear, vectors = arguments
    got = output if isinstance(output, torch.Tensor) else torch.stack(list(output))
    if got.shape != vectors.shape or got.dtype != vectors.dtype:
        raise ValueError(
            f"linear_loop: expected {vectors.dtype} {tuple(vectors.shape)}, got {got.dtype} {tuple(got.shape)}"
        )
    weight, bias, exact = (each.detach().double() for each in (linear.weight.T, linear.bias, vectors))
    expected = exact @ weight + bias
    rounding = torch.finfo(vectors.dtype).eps * (1 + params.features**0.5)
    within = (got.detach().double() - expected).abs() <= rounding * (exact.abs() @ weight.abs() + bias.abs())
    for row, column in within.logical_not().nonzero()[:1].tolist():
        raise ValueError(
            f"linear_loop: element {column} of vector {row}: "
            f"expected {expected[row, column].item()!r}, got {got[row, column].item()!r}"
        )


def work(params: Params) -> Work:
    """A result is ``features`` products and as many additions, the bias included."""
    itemsize = getattr(torch, params.dtype).itemsize
    weight_and_bias = (params.features * params.features + params.features) * itemsize
    return Work(
        units=params.vectors,
        flops=2 * params.vectors * params.features * params.features,
        bytes=2 * params.vectors * params.features * itemsize + weight_and_bias,
    )


SCENARIO = Scenario(
    name="linear_loop",
    summary="nn.Linear on many vectors, one by one or batched; per vector",
    source='forum question "Batching Question", discuss.pytorch.org topic 102632',
    params=Params,
    inputs=inputs,
    variants={"loop": loop, "batched": batched},
    check=check,
    work=work,
)
