"""The cost lies in the CPU allocator: one allocation per call."""

from __future__ import annotations

import torch
from known_cost import Params, open_extension, place


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor; every allocation of the process passes through the spinning allocator from here on."""
    open_extension(params).install_allocator()
    return (torch.ones(8),)


def call(x: torch.Tensor) -> torch.Tensor:
    """An operator that allocates its output and nothing else."""
    return torch.neg(x)


SCENARIO = place(
    "allocation", "a known cost in the CPU allocator", "c10/core/CPUAllocator.h (SetCPUAllocator)", call, inputs=inputs
)
