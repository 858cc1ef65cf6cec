"""Properties of NVIDIA's metrics by name: the unit, whether they add up, and floating-point operations.

Names are ``unit__counter.rollup[.submetric]`` (Nsight Compute documentation, Metrics Structure): ``sum`` of a counter adds up
over kernels, ``avg``, ``min``, ``max``, ``ratio`` and ``pct`` do not.
"""

from __future__ import annotations

from collections.abc import Mapping

_UNITS = (("bytes", "B"), ("cycles", "cycles"), ("inst", "instructions"), ("sectors", "sectors"), ("warps", "warps"))
_PRECISIONS = {"fp64": "d", "fp32": "f", "fp16": "h"}


def unit_of(metric: str) -> str:
    """Unit of a metric by its name; empty if it does not tell."""
    name, _, rollup = metric.partition(".")
    if "pct" in rollup or metric.endswith("%") or metric.lower().endswith("[%]"):
        return "%"
    counter = name.partition("__")[2]
    unit = next((unit for word, unit in _UNITS if word in counter.split("_")), "")
    if not unit or "ratio" in rollup:
        return ""
    return f"{unit}/s" if rollup.endswith("per_second") else f"{unit}/cycle" if "per_cycle" in rollup else unit


def adds_up(metric: str) -> bool:
    """Whether values of several kernels may be summed."""
    rollup = metric.partition(".")[2]
    return rollup in ("", "sum")


def flop(metrics: Mapping[str, float]) -> dict[str, float]:
    """Floating-point operations of CUDA cores by precision, of those whose three metrics are there.

    Additions, multiplications, and fused ones twice (Yang et al., Hierarchical Roofline Analysis, 2020, arXiv:2009.02449).
    """
    counts = {}
    for precision, letter in _PRECISIONS.items():
        names = [f"smsp__sass_thread_inst_executed_op_{letter}{op}_pred_on.sum" for op in ("add", "mul", "fma")]
        if all(name in metrics for name in names):
            add, mul, fma = (metrics[name] for name in names)
            counts[precision] = add + mul + 2 * fma
    return counts
