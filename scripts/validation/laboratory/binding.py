"""The cost lies in a pybind11 function that user code calls."""

from __future__ import annotations

import torch
from known_cost import Params, extension, open_extension

from overhead_lens.scenario import Scenario

SPIN = extension().spin


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor."""
    open_extension(params)
    return (torch.ones(8),)


def call(x: torch.Tensor) -> torch.Tensor:
    """The bound function, then an operator."""
    SPIN()
    return torch.neg(x)


SCENARIO = Scenario(
    name="laboratory_binding",
    summary="a known cost in a function bound with pybind11",
    source="pybind11/pybind11.h (cpp_function::dispatcher)",
    params=Params,
    inputs=inputs,
    variants={"call": call},
)
