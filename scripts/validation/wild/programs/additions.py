"""Adds numbers in Python and vectors in torch, in turns."""

import torch
from _options import read_options

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
    options = read_options(__doc__, steps=50_000, elements=400_000)
    a, b, c = prepared(options.elements)
    total = 0
    for _ in range(options.steps):
        total += step(a, b, c)
    print(f"numbers {total}, vectors {c.sum().item():.0f}")


if __name__ == "__main__":
    main()
