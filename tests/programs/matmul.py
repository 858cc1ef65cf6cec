"""Multiplies large matrices: nothing is wrong, the time is arithmetic."""

import argparse

import torch

WIDTH = 768


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=800)
    options = parser.parse_args()
    torch.manual_seed(0)
    matrix = torch.randn(WIDTH, WIDTH)
    rotation = torch.linalg.qr(torch.randn(WIDTH, WIDTH)).Q
    for _ in range(options.steps):
        matrix = matrix @ rotation
    print(f"norm {matrix.double().norm().item():.2f}")


if __name__ == "__main__":
    main()
