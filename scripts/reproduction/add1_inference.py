"""The ``add1`` scenario under ``torch.inference_mode()``, which stays on for as long as the measuring process lives.

    overhead-lens profile scripts/reproduction/add1_inference.py --compile

Entering the mode around each call would be part of what is measured; the figures of pytorch issue 122029 are of calls inside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from overhead_lens.scenario import Scenario

MODE = torch.inference_mode()


@dataclass(frozen=True)
class Params:
    """The length of the float32 tensor."""

    size: int = 10


def inputs(params: Params) -> tuple[torch.Tensor]:
    """An ordinary tensor, made before the mode is entered."""
    x = torch.randn(params.size)
    MODE.__enter__()
    return (x,)


def add1(x: torch.Tensor) -> torch.Tensor:
    """The workload of ``add1``."""
    return x + 1


def check(_params: Params, arguments: tuple[torch.Tensor], output: torch.Tensor) -> None:
    """The sum, and that the mode was on: its results are inference tensors."""
    if not output.is_inference():
        raise ValueError("add1_inference: inference mode was off")
    if output.tolist() != (arguments[0].numpy() + 1).tolist():
        raise ValueError("add1_inference: wrong sum")


SCENARIO = Scenario(
    name="add1_inference",
    summary="x + 1 on a tiny tensor under inference mode",
    source="pytorch issue 122029",
    params=Params,
    inputs=inputs,
    variants={"add1": add1},
    check=check,
)
