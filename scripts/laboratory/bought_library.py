"""Stands for a library that user code imports: its Python burns the laboratory's cost."""

from __future__ import annotations

from known_cost import COST


def work() -> None:
    """Burn the cost in an empty loop."""
    for _ in range(int(COST.cell[0] * COST.steps_per_ns)):
        pass
