"""The talk's sums: an array by PyTorch and by NumPy, a matrix by rows and by columns, a list by Python."""

import numpy as np
import numpy.typing as npt
import torch
from _options import read_options

LISTED = 10_000

Values = tuple[torch.Tensor, "npt.NDArray[np.float32]", torch.Tensor, list[float]]


def prepared(elements: int = 1_000_000, side: int = 1_000) -> Values:
    """An array for PyTorch and for NumPy, a matrix, and a list."""
    array = np.random.default_rng(0).random(elements, dtype=np.float32)
    return torch.from_numpy(array), array, torch.ones(side, side), [0.5] * LISTED


def step(vector: torch.Tensor, array: "npt.NDArray[np.float32]", matrix: torch.Tensor, listed: list[float]) -> float:
    """All of the sums together."""
    rows, columns = torch.sum(matrix, dim=1), torch.sum(matrix, dim=0)
    total: float = torch.sum(vector).item() + float(np.sum(array)) + sum(listed) + rows[0].item() + columns[0].item()
    return total


def main() -> None:
    """Sum again and again, and print what it comes to."""
    options = read_options(__doc__, steps=6_000, elements=1_000_000, side=1_000)
    vector, array, matrix, listed = prepared(options.elements, options.side)
    total = 0.0
    for _ in range(options.steps):
        total += step(vector, array, matrix, listed)
    print(f"sums {total:.0f}")


if __name__ == "__main__":
    main()
