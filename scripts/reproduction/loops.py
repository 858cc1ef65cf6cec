"""``linear_loop`` and ``elementwise_sqrt``: one call against one for each row."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scripts.reproduction.linear_peaks import PASSES, SIZE
from scripts.reproduction.measuring import clock, profile, profiled
from scripts.reproduction.outcomes import Call, Measured, Outcomes, Part, RatioRow, TimeRow, Unit
from scripts.reproduction.published import FORUM

# Only the ratio was published.
LINEAR_SPEED_UP = 77.0
GRAD = {"requires_grad": "true"}
LINEAR_CALLS = (
    Call("grad-loop", "linear_loop:loop", params=GRAD),
    Call("grad-batched", "linear_loop:batched", params=GRAD),
    Call("loop", "linear_loop:loop"),
    Call("batched", "linear_loop:batched"),
)
VECTORS, FEATURES = 10_000, 256
ONE_THREAD = {"threads": "1"}
PEAKS = str(Path(__file__).with_name("linear_peaks.py"))
PEAK_CALLS = (
    Call("product", PEAKS),
    Call("product_one_thread", PEAKS, params=ONE_THREAD),
    Call("read", f"{PEAKS}:read", params=ONE_THREAD),
)
SQRT_CALLS = (Call("loop", "elementwise_sqrt:loop"), Call("whole", "elementwise_sqrt:whole"))
_LABELS = ("arithmetic at the rate of a large product", "more on one thread", "more for reading the weight again")


def measure_kernel(options: argparse.Namespace) -> dict[str, Any]:
    """A unit: both ways without gradients, and the machine's peaks within the same minutes."""
    loop, batched = (profile(call, options) for call in LINEAR_CALLS[2:])
    return {**loop, **batched, **clock(PEAK_CALLS, 0, options)}


def kernel_notes(outcomes: Outcomes) -> list[str]:
    """The kernels' time of both ways per vector, split by this machine's peaks; empty until all is measured undisturbed.

    The loop computes on one thread and reads the weight again for every vector. Arithmetic and reading overlap at best, so that
    reading counts only beyond the arithmetic, and the rest beyond both.
    """
    names = ("kernel/loop", "kernel/batched", *(f"kernel/{call.name}" for call in PEAK_CALLS))
    measured = [outcome for outcome in map(outcomes.get, names) if isinstance(outcome, Measured)]
    if len(measured) < len(names) or any(outcome.is_disturbed for outcome in measured):
        return []
    loop, batched, product, one_thread, reading = measured
    share_of_product = 2 * FEATURES**2 / (2 * SIZE**3)
    arithmetic_ns, slow_ns = product.ns * share_of_product, one_thread.ns * share_of_product
    notes = []
    for name, side, ends_ns in (
        ("loop", loop, (arithmetic_ns, slow_ns, reading.ns / PASSES)),
        ("batched", batched, (arithmetic_ns,)),
    ):
        kernel_ns = side.host_ns["kernel"] / VECTORS
        parts_ns: list[float] = []
        for end_ns in ends_ns:
            parts_ns.append(max(min(end_ns, kernel_ns) - sum(parts_ns), 0.0))
        parts = [f"{ns:,.0f} ns {label}" for ns, label in zip(parts_ns, _LABELS, strict=False)]
        rate = 2 * FEATURES**2 / kernel_ns
        notes.append(
            f"The kernels of {name} take {kernel_ns:,.0f} ns a vector ({rate:.1f} GFLOP/s): {', '.join(parts)}, "
            f"{kernel_ns - sum(parts_ns):,.0f} ns the rest."
        )
    return notes


def _times(calls: tuple[Call, ...]) -> list[TimeRow]:
    """Rows of calls whose times nobody has published."""
    return [TimeRow(call.name, FORUM, None, call.name) for call in calls]


# As in the question, where the layer's weight requires a gradient, and without gradients.
LINEAR_RATIOS = [
    RatioRow(label, FORUM, LINEAR_SPEED_UP, f"{prefix}loop", f"{prefix}batched")
    for label, prefix in (
        ("batched over loop, weight requires_grad", "grad-"),
        ("batched over loop, no gradient", ""),
    )
]
SQRT_RATIO = RatioRow("whole over loop", FORUM, None, "loop", "whole")
PARTS = (
    Part("linear_loop", profiled(*LINEAR_CALLS), _times(LINEAR_CALLS), LINEAR_RATIOS),
    Part("linear_kernel", (Unit("kernel", measure_kernel),), notes=kernel_notes),
    Part("elementwise_sqrt", profiled(*SQRT_CALLS), _times(SQRT_CALLS), [SQRT_RATIO]),
)
