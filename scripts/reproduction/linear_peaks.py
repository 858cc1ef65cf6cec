"""What this machine can do at best where ``linear_loop`` computes: a large matrix product, and reading a layer's weight.

overhead-lens profile scripts/reproduction/linear_peaks.py:read -p threads=1
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from overhead_lens.scenario import Scenario

SIZE = 768
WEIGHT = 256 * 256
PASSES = 32  # One call reads 8 MiB, so that calling does not count.


@dataclass(frozen=True)
class Params:
    """Threads of torch; 0 for as many as it takes."""

    threads: int = 0


def inputs(params: Params) -> tuple[torch.Tensor, torch.Tensor]:
    """A square matrix, and a weight that is read again and again."""
    if params.threads:
        torch.set_num_threads(params.threads)
    return torch.ones(SIZE, SIZE), torch.ones(1, WEIGHT).expand(PASSES, WEIGHT)


def product(matrix: torch.Tensor, _weight: torch.Tensor) -> torch.Tensor:
    """2 * SIZE ** 3 FLOP."""
    return torch.mm(matrix, matrix)


def read(_matrix: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The weight, PASSES times."""
    return weight.sum()


SCENARIO = Scenario(
    name="linear_peaks",
    summary="peak rates of a linear layer",
    source="published question of linear_loop",
    params=Params,
    inputs=inputs,
    variants={"product": product, "read": read},
)
