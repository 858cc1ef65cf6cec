"""A step of two threads, with a known cost in every other one of its stretches: two regions, without the cost and with it.

python teamed.py [--site python|dispatcher|allocation|kernel|late] [--cost NS] [--steps N]

The threads' number is set, so that a machine of any number of cores has a team of two.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter_ns

import torch
from known_cost import COST, Params, open_extension

import overhead_lens as ol

# Steps of one kind in a row.
STRETCH = 10

# Some 1 ms in all: additions in Python, small operators, and sines that two threads divide.
_NUMBERS, _OPERATORS, _SINES, _ELEMENTS = 11_000, 330, 18, 20_000

Site = Callable[[torch.Tensor], object]


def python(_: torch.Tensor) -> None:
    """Look at the clock until the cost is spent."""
    if cost_ns := COST.cell[0]:
        until_ns = perf_counter_ns() + cost_ns
        while perf_counter_ns() < until_ns:
            pass


def prepared(site: str) -> Site:
    """The function in which the cost lies."""
    module = open_extension(Params())
    # The cell holds the cost for one operator only, which allocates once and is dispatched once.
    if site == "allocation":
        module.install_allocator()
    elif site == "dispatcher":
        module.enter_mode()
    operators = torch.ops.overhead_laboratory
    functions: dict[str, Site] = {
        "python": python,
        "dispatcher": torch.neg,
        "allocation": torch.neg,
        "kernel": operators.spin_together,
        "late": operators.spin_late,
    }
    return functions[site]


def main() -> None:
    """Make the steps, and spend the cost once in each step of every other stretch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", choices=("python", "dispatcher", "allocation", "kernel", "late"), default="python")
    parser.add_argument("--cost", type=int, default=0, metavar="NS")
    parser.add_argument("--steps", type=int, default=30_000)
    options = parser.parse_args()
    torch.set_num_threads(2)
    spend = prepared(options.site)
    small, angles, sines = torch.ones(8), torch.rand(_ELEMENTS), torch.zeros(_ELEMENTS)
    for number in range(options.steps):
        if number // STRETCH % 2:
            with_cost(spend, options.cost, small, angles, sines)
        else:
            without_cost(spend, small, angles, sines)
        ol.step()


# A stack tells by its functions which region it was taken in.
@ol.region("without")
def without_cost(spend: Site, small: torch.Tensor, angles: torch.Tensor, sines: torch.Tensor) -> None:
    """A step in which the site is passed."""
    work(small, angles, sines)
    spend(small)


@ol.region("with")
def with_cost(spend: Site, cost_ns: int, small: torch.Tensor, angles: torch.Tensor, sines: torch.Tensor) -> None:
    """A step that spends the cost."""
    work(small, angles, sines)
    COST.cell[0] = cost_ns
    spend(small)
    COST.cell[0] = 0


def work(small: torch.Tensor, angles: torch.Tensor, sines: torch.Tensor) -> None:
    """All that a step does beside."""
    total = 0
    for each in range(_NUMBERS):
        total += each
    for _ in range(_OPERATORS):
        torch.neg(small)
    for _ in range(_SINES):
        torch.sin(angles, out=sines)


if __name__ == "__main__":
    main()
