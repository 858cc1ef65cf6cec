"""A training script that can write down how long its steps took.

python stepped.py [--steps N] [--times FILE]
"""

from __future__ import annotations

import argparse
from array import array
from pathlib import Path
from time import perf_counter_ns

import torch
from torch import nn

WIDTH = 64
BATCH = 32


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--times", type=Path, metavar="FILE", help="where the steps' times go, int64 ns")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, targets = torch.randn(BATCH, WIDTH), torch.randn(BATCH, 1)
    times = array("q")
    for _ in range(options.steps):
        start_ns = perf_counter_ns()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        times.append(perf_counter_ns() - start_ns)
    if options.times:
        options.times.write_bytes(times.tobytes())


if __name__ == "__main__":
    main()
