"""A training script with a known cost in each step; it can write down how long its steps took.

python stepped.py [--site python|kernel|allocation|dispatcher] [--cost NS] [--steps N] [--times FILE]
"""

from __future__ import annotations

import argparse
from array import array
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns

import torch
from known_cost import COST, Params, open_extension
from torch import nn

Site = Callable[[torch.Tensor], object]

WIDTH = 64
BATCH = 32


def python(_: torch.Tensor) -> None:
    """Look at the clock until the cost is spent."""
    if cost_ns := COST.cell[0]:
        until_ns = perf_counter_ns() + cost_ns
        while perf_counter_ns() < until_ns:
            pass


def prepared(site: str) -> Site:
    """The function in which the cost lies: in a loop in Python, a kernel, the allocator, or a fallback of the dispatcher."""
    if site == "python":
        return python
    module = open_extension(Params())
    if site == "kernel":
        kernel: Site = torch.ops.overhead_laboratory.spin
        return kernel
    # The cell holds the cost for one operator only, which allocates once and is dispatched once.
    if site == "allocation":
        module.install_allocator()
    else:
        module.enter_mode()
    negated: Site = torch.neg
    return negated


def main() -> None:
    """Train, and spend the cost once a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", choices=("python", "kernel", "allocation", "dispatcher"), default="python")
    parser.add_argument("--cost", type=int, default=0, metavar="NS")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--times", type=Path, metavar="FILE", help="where the steps' times go, int64 ns")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    spend = prepared(options.site)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, wanted, small = torch.randn(BATCH, WIDTH), torch.randn(BATCH, 1), torch.ones(8)
    times = array("q")
    for _ in range(options.steps):
        start_ns = perf_counter_ns()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()
        COST.cell[0] = options.cost
        spend(small)
        COST.cell[0] = 0
        times.append(perf_counter_ns() - start_ns)
    if options.times:
        options.times.write_bytes(times.tobytes())


if __name__ == "__main__":
    main()
