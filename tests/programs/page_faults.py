"""Scales a large tensor into a fresh temporary each time: its memory is mapped, touched for the first time and given back."""

import argparse

import torch

# More than the 32 MiB from which on glibc maps every allocation afresh (mallopt(3), M_MMAP_THRESHOLD).
ELEMENTS = 17 * 2**19


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--reuse", action="store_true", help="write into one tensor")
    options = parser.parse_args()
    torch.set_num_threads(1)
    values = torch.ones(ELEMENTS)
    kept = torch.zeros(ELEMENTS)
    total = 0.0
    for step in range(options.steps):
        scaled = torch.mul(values, step % 7, out=kept if options.reuse else None)
        total += scaled[-1].item()
    print(f"total {total:.0f}")


if __name__ == "__main__":
    main()
