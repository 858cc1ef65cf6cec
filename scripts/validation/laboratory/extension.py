"""The cost lies in the extension: in the kernel of a custom operator, or in a function bound with pybind11."""

from __future__ import annotations

import torch
from known_cost import Params, extension, open_extension, place

SPIN = extension().spin


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor."""
    open_extension(params)
    return (torch.ones(8),)


def kernel(x: torch.Tensor) -> torch.Tensor:
    """The custom operator."""
    return torch.ops.overhead_laboratory.spin(x)


def binding(x: torch.Tensor) -> torch.Tensor:
    """The bound function, then an operator."""
    SPIN()
    return torch.neg(x)


SCENARIO = place(
    "extension",
    "a known cost in a custom operator's kernel or in a bound function",
    "torch/library.h (TORCH_LIBRARY), pybind11/pybind11.h (cpp_function::dispatcher)",
    kernel,
    binding,
    inputs=inputs,
)
