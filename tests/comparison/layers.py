"""Budgets of a layer called in a loop and at once, with what the machine could do at best."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from overhead_lens.budget.model import Breakdown
from overhead_lens.scenario import Work
from overhead_lens.subject import Subject
from tests.drawn.builders import breakdown
from tests.drawn.peaks import peaks as drawn_peaks

# 10 units share 1,000 bytes: read once they take 10 ns, read for every unit 100 ns; arithmetic takes 40 ns,
# 50 on one thread.
WORK = Work(units=10, flops=4_000, bytes=1_500, shared_bytes=1_000)


def peaks(level_rate: float = 1e11, flops_rate: float = 1e11, gemv_rate: float = 6e10) -> dict[str, Any]:
    return {
        "copy": [
            {"level": "L1", "bytes": 400, "capacity_bytes": 1_600, "bytes_per_s": 4e11, "one_thread": one(800, 2e11)},
            {
                "level": "L2",
                "bytes": 4_000,
                "capacity_bytes": 16_000,
                "bytes_per_s": 2e11,
                "one_thread": one(8_000, level_rate),
            },
            {
                "level": "DRAM",
                "bytes": 90_000,
                "capacity_bytes": None,
                "bytes_per_s": 2e10,
                "one_thread": one(None, 1e10),
            },
        ],
        "gemv": [{"level": "L2", "weight_bytes": 4_000, "bytes_per_s": gemv_rate}],
        "flops_per_s": flops_rate,
        "one_thread_flops_per_s": 0.8 * flops_rate,
    }


def one(capacity: int | None, rate: float) -> dict[str, Any]:
    return {"bytes": 100, "capacity_bytes": capacity, "bytes_per_s": rate}


def side(variant: str, reads: float | None, work: Work | None = WORK, /, **host_ns: int) -> Breakdown:
    return replace(
        breakdown(**host_ns),
        subject=Subject("scenario", "layer", variant),
        units=10,
        work=work,
        shared_reads=reads,
        peaks=drawn_peaks(peaks()),
    )


def sides() -> tuple[Breakdown, Breakdown]:
    """Ten vectors one by one, and at once."""
    return (
        side("loop", 10.0, python=2_000, dispatcher=1_000, allocation=500, kernel=300),
        side("batched", 1.0, python=100, dispatcher=80, allocation=20, kernel=50),
    )
