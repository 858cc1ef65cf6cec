"""Budgets of a layer called in a loop and at once."""

from __future__ import annotations

from dataclasses import replace

from overhead_lens.budget.model import Breakdown
from overhead_lens.scenario import Work
from overhead_lens.subject import Subject
from tests.drawn.builders import breakdown

WORK = Work(units=10, flops=4_000, bytes=1_500)


def side(variant: str, /, **host_ns: int) -> Breakdown:
    return replace(breakdown(**host_ns), subject=Subject("scenario", "layer", variant), units=10, work=WORK)


def sides() -> tuple[Breakdown, Breakdown]:
    """Ten vectors one by one, and at once."""
    return (
        side("loop", python=2_000, dispatcher=1_000, allocation=500, kernel=300),
        side("batched", python=100, dispatcher=80, allocation=20, kernel=50),
    )
