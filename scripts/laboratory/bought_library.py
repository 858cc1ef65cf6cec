"""Stands for a library that user code imports: its Python burns the laboratory's cost."""

from __future__ import annotations

from itertools import repeat

from known_cost import COST


def work() -> None:
    """Burn the cost in an empty loop."""
    for _ in repeat(None, COST.cell[1]):
        pass
