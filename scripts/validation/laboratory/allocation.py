"""The cost lies in the CPU allocator: one allocation per call."""

from __future__ import annotations

import torch
from known_cost import Params, open_extension

from overhead_lens.scenario import Scenario


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor; every allocation of the process passes through the spinning allocator from here on."""
    open_extension(params).install_allocator()
    return (torch.ones(8),)


def call(x: torch.Tensor) -> torch.Tensor:
    """An operator that allocates its output and nothing else."""
    return torch.neg(x)


SCENARIO = Scenario(
    name="laboratory_allocation",
    summary="a known cost in the CPU allocator",
    source="c10/core/CPUAllocator.h (SetCPUAllocator)",
    params=Params,
    inputs=inputs,
    variants={"call": call},
)
