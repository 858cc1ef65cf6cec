"""The program ``items`` as a scenario: values read one by one, or all at once."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from overhead_lens.scenario import NoParams, Scenario

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from tests.programs import items as program

SCENARIO = Scenario(
    name="read_values",
    summary="values are clipped one by one, each read with .item()",
    source="tests/programs/items.py",
    params=NoParams,
    inputs=lambda _: (torch.randn(program.VALUES),),
    variants={"one_by_one": program.clipped_sum, "at_once": program.clipped_sum_at_once},
)
