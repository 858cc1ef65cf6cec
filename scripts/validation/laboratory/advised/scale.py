"""The program ``page_faults`` as a scenario: a large temporary that is mapped afresh, or written into one tensor."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from overhead_lens.scenario import NoParams, Scenario

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from tests.programs import page_faults as program


def inputs(_: NoParams) -> tuple[torch.Tensor, torch.Tensor]:
    """What is scaled, and a tensor to keep the result."""
    torch.set_num_threads(1)
    return torch.ones(program.ELEMENTS), torch.zeros(program.ELEMENTS)


def fresh(values: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
    """Into a temporary."""
    return torch.mul(values, 3)


def reuse(values: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:
    """Into the same tensor each time."""
    return torch.mul(values, 3, out=buffer)


SCENARIO = Scenario(
    name="scale",
    summary="a large tensor is scaled into a fresh temporary",
    source="tests/programs/page_faults.py",
    params=NoParams,
    inputs=inputs,
    variants={"fresh": fresh, "reuse": reuse},
)
