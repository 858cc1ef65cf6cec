"""Adds up waves with more threads than there are cores: small operators wait for threads that do not run."""

import argparse

import torch

# Just above what PyTorch gives to one thread (at::internal::GRAIN_SIZE).
ELEMENTS = 40_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    waves = torch.linspace(0, 1, ELEMENTS)
    total = torch.zeros(ELEMENTS)
    for _ in range(options.steps):
        for _ in range(4):
            total = total * 0.5 + waves
    print(f"total {total.double().sum().item():.2f}")


if __name__ == "__main__":
    main()
