"""Stands for a library that user code imports: its Python burns the laboratory's cost."""

from __future__ import annotations

from time import perf_counter_ns

from known_cost import COST


def work() -> None:
    """Look at the clock until the cost is spent."""
    if cost_ns := COST.cell[0]:
        until_ns = perf_counter_ns() + cost_ns
        while perf_counter_ns() < until_ns:
            pass
