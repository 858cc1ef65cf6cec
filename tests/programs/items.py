"""Clips values one by one: each is read with ``.item()``."""

import argparse

import torch

VALUES = 500


def clipped_sum(values: torch.Tensor) -> float:
    """The sum of the positive values, each at most 1."""
    total = 0.0
    for value in values:
        if value.item() > 0:
            total += min(value.item(), 1.0)
    return total


def clipped_sum_at_once(values: torch.Tensor) -> float:
    return values.clamp(0, 1).sum(dtype=torch.float64).item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--at-once", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sum_of = clipped_sum_at_once if options.at_once else clipped_sum
    total = 0.0
    for _ in range(options.steps):
        total += sum_of(torch.randn(VALUES))
    print(f"total {total:.2f}")


if __name__ == "__main__":
    main()
