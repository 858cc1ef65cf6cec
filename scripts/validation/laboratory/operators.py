"""Operators on much data: which of ``surveyed`` is called can be changed while it runs."""

from __future__ import annotations

from typing import Any

import torch
from known_cost import COST, Params
from surveyed import Call, all_calls

from overhead_lens.scenario import Scenario

CALLS: list[Call] = []


def inputs(params: Params) -> tuple[()]:
    """Nothing: every call has its own."""
    COST.open(params)
    torch.set_num_threads(1)
    torch.manual_seed(7)
    CALLS[:] = all_calls().values()
    return ()


def call() -> Any:
    """The operator whose number the cell holds."""
    return CALLS[COST.cell[0]]()


SCENARIO = Scenario(
    name="laboratory_operators",
    summary="operators on much data, nearly all of it their kernel's time",
    source="aten/src/ATen/native",
    params=Params,
    inputs=inputs,
    variants={"call": call},
)
