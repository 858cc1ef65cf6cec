"""The fixed JSON of a breakdown (``overhead-lens/breakdown/1``) and of a difference (``overhead-lens/delta/1``)."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from overhead_lens.analysis.model import (
    SCHEMA,
    Breakdown,
    CrossCheck,
    DeviceShare,
    Floor,
    Guard,
    GuardTree,
    HostCategory,
    InstructionBudget,
)
from overhead_lens.compare.factors import Factors
from overhead_lens.compare.instructions import InstructionDelta
from overhead_lens.compare.model import SCHEMA as DELTA_SCHEMA
from overhead_lens.compare.model import Delta, Move

# Functions of a category in instructions; a compiled call has hundreds.
_TOP = 8


def breakdown_document(breakdown: Breakdown) -> dict[str, Any]:
    """JSON values of a breakdown; every duration in ns per call."""
    wall, closure = breakdown.wall, breakdown.closure
    return {
        "schema": SCHEMA,
        "scenario": breakdown.scenario,
        "variant": breakdown.variant,
        "compile": breakdown.compile,
        "params": {name: _finite(value) for name, value in breakdown.params.items()},
        "per": "call",
        "unit": "ns",
        "wall": {
            "ns": float(wall.ns),
            "ci95_ns": _tenths(wall.ci95_ns),
            "processes": wall.processes,
            "blocks": wall.blocks,
            "calls": wall.calls,
            "floor_ns": round(wall.floor_ns, 3),
            "floor": None if wall.floor is None else _floor(wall.floor),
        },
        "host": [_category(each) for each in breakdown.host],
        "device": None if breakdown.device is None else _device(breakdown.device),
        "closure": {
            "sum_ns": float(closure.sum_ns),
            "residual_ns": float(closure.residual_ns),
            "trace_sum_ns": None if closure.trace_sum_ns is None else float(closure.trace_sum_ns),
            "trace_residual_share": _rounded(closure.trace_residual_share, 4),
            "trace_bare_ns": None if closure.trace_bare_ns is None else float(closure.trace_bare_ns),
        },
        "cross_checks": [_cross_check(check) for check in breakdown.cross_checks],
        "instructions": None if breakdown.instructions is None else _instructions(breakdown.instructions),
        "guards": [_guard(guard) for guard in breakdown.guards],
        "guard_tree": None if breakdown.guard_tree is None else _guard_tree(breakdown.guard_tree),
        "compile_notes": [asdict(note) for note in breakdown.compile_notes],
        "warnings": list(breakdown.warnings),
        "environment": {**breakdown.environment, "device": breakdown.device_kind},
        "capture": breakdown.capture,
    }


def _guard(guard: Guard) -> dict[str, Any]:
    return {
        "guard": guard.guard,
        "warm_ns": _rounded(guard.warm_ns, 1),
        "warm_ci95_ns": None if guard.warm_ci95_ns is None else _tenths(guard.warm_ci95_ns),
        "cold_ns": _rounded(guard.cold_ns, 1),
        "sampled_ns": _rounded(guard.sampled_ns, 1),
        "cause": guard.cause,
    }


def _guard_tree(tree: GuardTree) -> dict[str, Any]:
    return {
        "warm_ns": round(tree.warm_ns, 1),
        "warm_ci95_ns": _tenths(tree.warm_ci95_ns),
        "cold_ns": _rounded(tree.cold_ns, 1),
    }


def _cross_check(check: CrossCheck) -> dict[str, Any]:
    readings = {"samples": check.samples, "trace": check.trace, "ablation": check.ablation}
    figures = {f"{name}_ns": None if seen is None else round(seen.ns, 1) for name, seen in readings.items()}
    intervals = {f"{name}_ci95_ns": None if seen is None else _tenths(seen.ci95_ns) for name, seen in readings.items()}
    return {"category": check.category, **figures, "agree": check.agree, "ablation_bound": check.bound, **intervals}


def _floor(floor: Floor) -> dict[str, Any]:
    return {
        "ns": round(floor.ns, 3),
        "bound": floor.bound,
        "level": floor.level,
        "flops_per_s": round(floor.flops_per_s),
        "bytes_per_s": round(floor.bytes_per_s),
    }


def _device(device: DeviceShare) -> dict[str, Any]:
    return {
        "device": device.device,
        "kind": device.kind,
        "evidence": "trace",
        "busy_ns": device.busy_ns,
        "idle_ns": device.idle_ns,
        "kinds": {
            "compute_ns": device.compute_ns,
            "communication_ns": device.communication_ns,
            "copy_ns": device.copy_ns,
            "overlap_ns": device.overlap_ns,
        },
        "idle_blame": dict(device.idle_blame),
        "events_per_call": round(device.events_per_call, 3),
        "launch": {
            "per_call": round(device.launches_per_call, 3),
            "median_ns": device.launch_median_ns,
            "p99_ns": device.launch_p99_ns,
            "graph_launches_per_call": round(device.graph_launches_per_call, 3),
        },
        "top": [asdict(each) for each in device.top],
    }


def _category(category: HostCategory) -> dict[str, Any]:
    return {
        "category": category.category,
        "ns": float(category.ns),
        "ci95_ns": _tenths(category.ci95_ns),
        "share": round(category.share, 5),
        "evidence": category.evidence,
        "parts": [{"name": part.name, "ns": float(part.ns)} for part in category.parts],
        "top": [{"frame": frame.frame, "ns": float(frame.ns)} for frame in category.top],
    }


def _instructions(budget: InstructionBudget) -> dict[str, Any]:
    """Whole instructions per call; ``counted`` in all ``calls``."""
    return {
        "count": budget.count,
        "counted": budget.counted,
        "calls": budget.calls,
        "host": [
            {
                "category": each.category,
                "count": each.count,
                "parts": [asdict(part) for part in each.parts],
                "top": [asdict(frame) for frame in each.frames[:_TOP]],
            }
            for each in budget.host
        ],
    }


def instruction_delta_document(delta: InstructionDelta) -> dict[str, Any]:
    """JSON values of a difference in whole instructions per call."""
    return {
        "base_count": delta.base_count,
        "new_count": delta.new_count,
        "delta_count": delta.delta_count,
        "ratio": _rounded(delta.new_count / delta.base_count, 6) if delta.base_count else None,
        "verdict": delta.verdict,
        "host": [{**asdict(change), "delta_count": change.delta_count} for change in delta.host],
        "blame": list(delta.blame),
        "sentence": delta.sentence,
    }


def delta_document(delta: Delta) -> dict[str, Any]:
    """JSON values of a difference; ``base`` and ``new`` are breakdown documents."""
    return {
        "schema": DELTA_SCHEMA,
        "base": breakdown_document(delta.base),
        "new": breakdown_document(delta.new),
        "verdict": delta.verdict,
        "margin_share": delta.margin_share,
        "wall": {
            "base_ns": float(delta.base.wall.ns),
            "new_ns": float(delta.new.wall.ns),
            "delta_ns": float(delta.wall_delta_ns),
            "ci95_ns": _tenths(delta.wall_ci95_ns),
            "ratio": _rounded(delta.ratio, 4),
        },
        "host": [
            {
                "category": change.category,
                "delta_ns": float(change.delta_ns),
                "ci95_ns": _tenths(change.ci95_ns),
                "verdict": change.verdict,
                "in_frames_ns": None if change.in_frames_ns is None else float(change.in_frames_ns),
                "moved": [_move(each) for each in change.moved],
            }
            for change in delta.host
        ],
        "blame": list(delta.blame),
        "sentence": delta.sentence,
        "detectable_share": round(delta.detectable_share, 5),
        "factors": None if delta.factors is None else _factors(delta.factors),
        "instructions": None if delta.instructions is None else instruction_delta_document(delta.instructions),
        "warnings": list(delta.warnings),
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "kind": move.kind,
        "name": move.name,
        "delta_ns": float(move.delta_ns),
        "ci95_ns": None if move.ci95_ns is None else _tenths(move.ci95_ns),
        "verdict": move.verdict,
    }


def _factors(factors: Factors) -> dict[str, Any]:
    """``parts`` are whole ns per call that sum to the walls; ``per_unit_ns`` is the difference per unit of work."""
    return {
        "units": factors.units,
        "base_ns": factors.base_ns,
        "new_ns": factors.new_ns,
        "delta_ns": factors.delta_ns,
        "parts": [
            {
                "name": part.name,
                "base_ns": part.base_ns,
                "new_ns": part.new_ns,
                "delta_ns": part.delta_ns,
                "per_unit_ns": round(part.delta_ns / factors.units, 3),
                "share": round(factors.share(part), 5),
                "ratio_without": _rounded(factors.ratio_without(part), 4),
                "estimate": part.estimate,
            }
            for part in factors.parts
        ],
        "kernel": None if factors.kernel is None else asdict(factors.kernel),
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _tenths(interval: tuple[float, float]) -> list[float]:
    return [round(interval[0], 1), round(interval[1], 1)]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)
