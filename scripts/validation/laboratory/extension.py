"""The cost lies in the extension: in the kernel of a custom operator, or in a function bound with pybind11."""

from __future__ import annotations

import torch
from known_cost import Params, extension, open_extension

from overhead_lens.scenario import Scenario

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


SCENARIO = Scenario(
    name="laboratory_extension",
    summary="a known cost in a custom operator's kernel or in a bound function",
    source="torch/library.h (TORCH_LIBRARY), pybind11/pybind11.h (cpp_function::dispatcher)",
    params=Params,
    inputs=inputs,
    variants={"kernel": kernel, "binding": binding},
)
