"""The cost lies beside threads that wait for each other: in a kernel that two of them share, or in Python code before one."""

from __future__ import annotations

import torch
from known_cost import COST, Params, place
from user_code import spend

# A sine of so many elements is divided among threads; it takes some 8 us, as long as two threads take to start and meet.
_ELEMENTS = 10_000

# About what two threads add to it in a ns.
_ELEMENTS_PER_NS = 2

_MOST_ELEMENTS = _ELEMENTS + 100_000 * _ELEMENTS_PER_NS


def inputs(params: Params) -> tuple[torch.Tensor, torch.Tensor]:
    """What the sine is of, and where it goes: as much as the highest cost needs, in memory that is there."""
    COST.open(params)
    torch.set_num_threads(2)
    return torch.ones(_MOST_ELEMENTS), torch.zeros(_MOST_ELEMENTS)


def kernel(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """A sine of as many elements more as the requested cost needs."""
    count = _ELEMENTS + COST.cell[0] * _ELEMENTS_PER_NS
    return torch.sin(x[:count], out=out[:count])


def user_code(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """The cost, then the sine."""
    spend()
    return torch.sin(x[:_ELEMENTS], out=out[:_ELEMENTS])


@torch.compile
def compiled(x: torch.Tensor) -> torch.Tensor:
    """The sine as Inductor divides it among threads."""
    return torch.sin(x[:_ELEMENTS])


def beside_compiled(x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    """The cost, then the compiled sine."""
    spend()
    return compiled(x)


SCENARIO = place(
    "threads",
    "a known cost on two threads, or beside them",
    "aten/src/ATen/Parallel.h (parallel_for)",
    kernel,
    user_code,
    beside_compiled,
    inputs=inputs,
)
