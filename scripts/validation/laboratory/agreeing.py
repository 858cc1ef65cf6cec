"""One step for ``run``, ``attach`` and ``profile``: additions in Python, small operators, and two that threads divide.

python agreeing.py [--steps N]
"""

from __future__ import annotations

import argparse

import torch

_NUMBERS, _OPERATORS = 1_000, 30


def prepared() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A small tensor, a large one, and where its results go."""
    large = torch.rand(100_000)
    return torch.ones(8), large, torch.zeros_like(large)


def step(small: torch.Tensor, large: torch.Tensor, out: torch.Tensor) -> int:
    """The step; returns the sum of the numbers."""
    total = 0
    for number in range(_NUMBERS):
        total += number
    for _ in range(_OPERATORS):
        torch.neg(small)
    torch.add(large, large, out=out)
    torch.sin(large, out=out)
    return total


def main() -> None:
    """Say that the imports are over, then make the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    small, large, out = prepared()
    print("ready", flush=True)
    for _ in range(options.steps):
        step(small, large, out)


if __name__ == "__main__":
    main()
