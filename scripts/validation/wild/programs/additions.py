"""Adds numbers in Python and vectors in torch, in turns."""

import argparse

import torch

NUMBERS = 2_000


def prepared(elements: int = 400_000) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two vectors, and where their sum goes."""
    return torch.ones(elements), torch.ones(elements), torch.zeros(elements)


def step(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> int:
    """The sum of the numbers; that of the vectors goes into ``c``."""
    total = 0
    for number in range(NUMBERS):
        total += number
    torch.add(a, b, out=c)
    return total


def main() -> None:
    """Add and print both sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--elements", type=int, default=400_000)
    options = parser.parse_args()
    a, b, c = prepared(options.elements)
    total = 0
    for _ in range(options.steps):
        total += step(a, b, c)
    print(f"numbers {total}, vectors {c.sum().item():.0f}")


if __name__ == "__main__":
    main()
