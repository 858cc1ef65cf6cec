"""Operators on much data: which of ``surveyed`` is called can be changed while it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from known_cost import COST, NAMES_FILE, Params, place
from surveyed import Call, all_calls

CALLS: list[Call] = []


def inputs(params: Params) -> tuple[()]:
    """Nothing: every call has its own. Their names go beside the file of the cell."""
    COST.open(params)
    torch.set_num_threads(1)
    torch.manual_seed(7)
    calls = all_calls()
    CALLS[:] = calls.values()
    if params.cell:
        Path(params.cell).with_name(NAMES_FILE).write_text(json.dumps(list(calls)), encoding="utf-8")
    return ()


def call() -> Any:
    """The operator whose number the cell holds."""
    return CALLS[COST.cell[0]]()


SCENARIO = place(
    "operators",
    "operators on much data, nearly all of it their kernel's time",
    "aten/src/ATen/native",
    call,
    inputs=inputs,
)
