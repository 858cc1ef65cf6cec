"""The cost lies in a boxed fallback of the dispatcher: one dispatch per call passes through it."""

from __future__ import annotations

import torch
from known_cost import Params, open_extension, place


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor; every operator of this thread passes through the spinning fallback from here on."""
    module = open_extension(params)
    x = torch.ones(2, 2)
    module.enter_mode()
    return (x,)


def neg(x: torch.Tensor) -> torch.Tensor:
    """One operator, which a compiler makes a kernel of its own."""
    return torch.neg(x)


def product(x: torch.Tensor) -> torch.Tensor:
    """One operator, which a compiler calls through the dispatcher."""
    return torch.mm(x, x)


SCENARIO = place(
    "dispatch",
    "a known cost in a boxed fallback of the dispatcher",
    "aten/src/ATen/core/boxing (makeFromBoxedFunction), c10/core/DispatchKey.h (TESTING_ONLY_GenericMode)",
    neg,
    product,
    inputs=inputs,
)
