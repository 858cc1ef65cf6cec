"""``x + 1`` compiled, with its guards and without any: what do guards cost beside their own time?

overhead-lens compare scripts/validation/laboratory/guards_or_none.py:none scripts/validation/laboratory/guards_or_none.py:all
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from overhead_lens.scenario import Scenario


@dataclass(frozen=True)
class Params:
    """A vector's elements."""

    size: int = 10


def inputs(params: Params) -> tuple[torch.Tensor]:
    """Zeros."""
    return (torch.zeros(params.size),)


def guarded(x: torch.Tensor) -> torch.Tensor:
    """One addition."""
    return x + 1


def unguarded(x: torch.Tensor) -> torch.Tensor:
    """The same."""
    return x + 1


def check(params: Params, arguments: tuple[torch.Tensor], output: torch.Tensor) -> None:
    """Every element is one."""
    if not torch.equal(output, torch.ones(params.size)):
        raise ValueError(f"guards_or_none: {arguments[0]} + 1 is not {output}")


SCENARIO = Scenario(
    name="guards_or_none",
    summary="x + 1 compiled, with all guards or none",
    source="the ablation of guards",
    params=Params,
    inputs=inputs,
    variants={
        "all": torch.compile(guarded),
        "none": torch.compile(unguarded, options={"guard_filter_fn": lambda guards: [False] * len(guards)}),
    },
    check=check,
)
