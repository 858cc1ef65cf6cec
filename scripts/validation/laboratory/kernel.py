"""The cost lies in the kernel of a custom operator."""

from __future__ import annotations

import torch
from known_cost import Params, open_extension

from overhead_lens.scenario import Scenario


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor."""
    open_extension(params)
    return (torch.ones(8),)


def call(x: torch.Tensor) -> torch.Tensor:
    """The custom operator."""
    return torch.ops.overhead_laboratory.spin(x)


SCENARIO = Scenario(
    name="laboratory_kernel",
    summary="a known cost in the kernel of a custom operator",
    source="torch/library.h (TORCH_LIBRARY)",
    params=Params,
    inputs=inputs,
    variants={"call": call},
)
