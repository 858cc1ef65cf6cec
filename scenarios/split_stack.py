"""Sixteen small pieces handled one by one, then stacked, against the same operations on one tensor.

The puzzler "To Fuse or Not to Fuse?" (gpupuzzlers.com/posts/fusion), on a 40 GB A100. Both variants normalize each
row, take its tanh, and put it through ``Linear(cols, 1)`` and ReLU. Start to finish, over ``split_stack``: ``combined``
8.4 times faster, ``split_stack`` compiled 2.5, ``combined`` compiled 10.3. The published answer is host overhead
exposed as idle time of the GPU: ``split_stack`` has 188 us of kernels in 1613 us, ``combined`` 66 in 198; compiled,
``combined`` has 26 us in 4 kernels, and ``split_stack`` 19 kernels, since pieces are not fused with one another.

There the LayerNorm module is made in the function and the linear layer on the CPU. Here both are inputs, on the device
of the data, so that what is timed is the call and both variants have the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from overhead_lens.scenario import Scenario, Work

LEAST_COLS = 2

Inputs = tuple[torch.Tensor, tuple[int, int, int], nn.LayerNorm, nn.Linear]


@dataclass(frozen=True)
class Params:
    """The data is one vector of ``pieces * rows * cols``; ``requires_grad`` is that of the linear layer."""

    pieces: int = 16
    rows: int = 1024
    cols: int = 256
    dtype: Literal["float32", "float64"] = "float32"
    device: Literal["cpu", "cuda"] = "cpu"
    requires_grad: bool = False

    def __post_init__(self) -> None:
        if self.pieces < 1 or self.rows < 1:
            raise ValueError(f"pieces and rows must be at least 1, not {self.pieces} and {self.rows}")
        if self.cols < LEAST_COLS:
            raise ValueError(f"cols must be at least {LEAST_COLS}, not {self.cols}: one number has no variance")


def inputs(params: Params) -> Inputs:
    on_device = {"dtype": getattr(torch, params.dtype), "device": params.device}
    shape = (params.pieces, params.rows, params.cols)
    flat = torch.randn(params.pieces * params.rows * params.cols, **on_device)
    layer_norm = nn.LayerNorm(params.cols, eps=0.0, elementwise_affine=False, **on_device)
    linear = nn.Linear(params.cols, 1, **on_device).requires_grad_(params.requires_grad)
    return flat, shape, layer_norm, linear


def split_stack(
    flat: torch.Tensor, shape: tuple[int, int, int], layer_norm: nn.LayerNorm, linear: nn.Linear
) -> torch.Tensor:
    _, rows, cols = shape
    pieces = [torch.tanh(layer_norm(piece.view(rows, cols))) for piece in torch.split(flat, rows * cols)]
    return torch.relu(linear(torch.stack(pieces)))


def combined(
    flat: torch.Tensor, shape: tuple[int, int, int], layer_norm: nn.LayerNorm, linear: nn.Linear
) -> torch.Tensor:
    return torch.relu(linear(torch.tanh(layer_norm(flat.view(shape)))))


def check(params: Params, arguments: Inputs, output: torch.Tensor) -> None:
    """Every element against the formula written out in float64.

    Subtracting a row's mean costs roundings of its largest value, which the division by its deviation magnifies; tanh
    and ReLU pass an error on at most unchanged; the linear layer adds one error a column, weighted.
    """
    flat, shape, _, linear = arguments
    if output.shape != (*shape[:2], 1) or output.dtype != flat.dtype:
        raise ValueError(
            f"split_stack: expected {flat.dtype} {(*shape[:2], 1)}, got {output.dtype} {tuple(output.shape)}"
        )
    x, weight, bias = (each.detach().cpu().double() for each in (flat.view(shape), linear.weight[0], linear.bias[0]))
    centred = x - x.sum(dim=2, keepdim=True) / params.cols
    deviation = ((centred * centred).sum(dim=2, keepdim=True) / params.cols).sqrt()
    expected = ((centred / deviation).tanh() * weight).sum(dim=2).add(bias).clamp(min=0)
    magnified = 1 + x.abs().amax(dim=2) / deviation[..., 0]
    roundings = torch.finfo(flat.dtype).eps * (4 + params.cols**0.5)
    got = output[..., 0].detach().cpu().double()
    within = (got - expected).abs() <= roundings * (weight.abs().sum() * magnified + bias.abs())
    for piece, row in within.logical_not().nonzero()[:1].tolist():
        raise ValueError(
            f"split_stack: row {row} of piece {piece}: "
            f"expected {expected[piece, row].item()!r}, got {got[piece, row].item()!r}"
        )


def work(params: Params) -> Work:
    """Operations for a row of c columns: 8c + 3.

    Mean c, variance 3c, square root and reciprocal 2, scaling c, tanh c (each counted as one), linear layer 2c, ReLU 1.
    """
    rows = params.pieces * params.rows
    itemsize = getattr(torch, params.dtype).itemsize
    return Work(
        units=params.pieces,
        flops=rows * (8 * params.cols + 3),
        bytes=(rows * params.cols + params.cols + 1 + rows) * itemsize,
    )


SCENARIO = Scenario(
    name="split_stack",
    summary="LayerNorm, tanh, Linear, ReLU on pieces then stacked, or on one tensor; per piece",
    source='GPUPuzzlers, "To Fuse or Not to Fuse?", gpupuzzlers.com/posts/fusion',
    params=Params,
    inputs=inputs,
    variants={"split_stack": split_stack, "combined": combined},
    check=check,
    work=work,
)
