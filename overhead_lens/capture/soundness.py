"""What makes a stored capture, ladder or sweep damaged: a fault is said in words, None says there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from overhead_lens.capture.files import ABLATION, CLOCK, META

# What the analysis takes from meta.json, with its type; all else is for people.
_REQUIRED: Mapping[str, type] = {
    "scenario": str,
    "variant": str,
    "compile": bool,
    "device": str,
    "params": dict,
    "work": dict,
    "trace": dict,
    "samples": dict,
}
_OPTIONAL: Mapping[str, tuple[type, ...]] = {
    "guards": (dict, type(None)),
    "peaks": (dict, type(None)),
    "instructions": (dict, type(None)),
    "published": (list,),
    "warnings": (list,),
    "environment": (dict,),
    "recorded_with": (str,),
    "page_faults": (list,),
}
_REQUIRED_OF_LADDER: Mapping[str, type] = {
    "scenario": str,
    "variant": str,
    "device": str,
    "params": dict,
    "names": list,
    "reasons": dict,
    "pairs": dict,
}
_REQUIRED_OF_PUBLISHED: Mapping[str, Any] = {
    "label": str,
    "ns": (int, float),
    "variant": str,
    "source": str,
    "params": dict,
    "rung": str,
}
_LEAST = {"process": 0, "block": 0, "calls": 1, "wall_ns": 0, "reference_ns": 1, "minor_faults": 0}
_LEAST_OF_LADDER = {name: least for name, least in _LEAST.items() if name != "minor_faults"}
_COLUMNS_OF_SWEEP = {"process", "variant", "point", "block", "calls", "wall_ns", "reference_ns"}


def fault_of_capture(meta: Mapping[str, Any], clock: pd.DataFrame, ablation: pd.DataFrame | None) -> str | None:
    """Of a capture of one call: its ``meta.json``, blocks and rungs."""
    least = {**_LEAST, **({"steady_ns": 0} if "steady_ns" in clock else {})}
    fault = _fault_of_meta(meta) or _fault_of_columns(clock, CLOCK, least)
    if fault or ablation is None:
        return fault
    return _fault_of_columns(ablation, ABLATION, _LEAST_OF_LADDER, ("rung",))


def fault_of_ladder(meta: Mapping[str, Any], rows: pd.DataFrame) -> str | None:
    """Of a ladder: its ``meta.json`` and the blocks of rungs and steps."""
    return (
        _fault_of_types(meta, _REQUIRED_OF_LADDER)
        or _fault_of_reasons(meta)
        or _fault_of_published(meta)
        or _fault_of_ablation(rows)
    )


def fault_of_sweep(rows: pd.DataFrame) -> str | None:
    """Of a sweep: its blocks."""
    missing = _COLUMNS_OF_SWEEP - set(rows.columns)
    return f"{CLOCK} has no {', '.join(sorted(missing)) or 'rows'}" if missing or rows.empty else None


def _fault_of_meta(meta: Mapping[str, Any]) -> str | None:
    if fault := _fault_of_types(meta, _REQUIRED):
        return fault
    work = [meta["work"].get(name) for name in ("units", "flops", "bytes")]
    if not all(isinstance(each, int) for each in work) or work[0] < 1:
        return f"{META}: work is {meta['work']}"
    counted = meta.get("instructions") or {}
    if counted and not (isinstance(counted.get("calls"), int) and counted["calls"] > 0):
        return f"{META}: instructions are {counted}"
    return _fault_of_page_faults(meta.get("page_faults", [])) or _fault_of_peaks(meta.get("peaks") or {})


def _fault_of_page_faults(rows: Sequence[Any]) -> str | None:
    for row in rows:
        counts = [row.get(name) for name in ("faults", "user_ns")] if isinstance(row, dict) else [None]
        if not all(isinstance(count, int) and count >= 0 for count in counts):
            return f"{META}: page_faults hold {row}"
    return None


def _fault_of_peaks(peaks: Mapping[str, Any]) -> str | None:
    """Peaks are divided by: what the analysis takes of them must be there and positive."""
    if not peaks:
        return None
    copy = peaks.get("copy")
    levels = copy if isinstance(copy, list) and copy and all(isinstance(each, dict) for each in copy) else [{}]
    rates = [peaks.get("flops_per_s"), *(level.get(name) for level in levels for name in ("bytes", "bytes_per_s"))]
    sound = all(isinstance(rate, (int, float)) and rate > 0 for rate in rates)
    return None if sound else f"{META}: peaks are {peaks}"


def _fault_of_types(meta: Mapping[str, Any], required: Mapping[str, type]) -> str | None:
    for name, kind in required.items():
        if not isinstance(meta.get(name), kind):
            return f"{META}: {name} is {f'not of type {kind.__name__}' if name in meta else 'missing'}"
    for name, kinds in _OPTIONAL.items():
        if name in meta and not isinstance(meta[name], kinds):
            return f"{META}: {name} is not of type {kinds[0].__name__}"
    return None


def _fault_of_reasons(meta: Mapping[str, Any]) -> str | None:
    for name in ("reasons", "pairs"):
        if not all(reason is None or isinstance(reason, str) for reason in meta[name].values()):
            return f"{META}: {name} are {meta[name]}"
    return None


def _fault_of_published(meta: Mapping[str, Any]) -> str | None:
    for each in meta.get("published", ()):
        sound = isinstance(each, dict) and all(
            isinstance(each.get(name), kind) for name, kind in _REQUIRED_OF_PUBLISHED.items()
        )
        if not sound:
            return f"{META}: a published figure is {each}"
    return None


def _fault_of_ablation(rows: pd.DataFrame) -> str | None:
    if fault := _fault_of_columns(rows, ABLATION, _LEAST_OF_LADDER, ("kind", "rung", "minor_faults")):
        return fault
    timed = rows[rows["kind"] == "rung"]
    if timed.empty:
        return f"{ABLATION} has no rows of a rung"
    faults = pd.to_numeric(timed["minor_faults"], errors="coerce")
    return None if (faults >= 0).all() else f"{ABLATION}: minor_faults must hold numbers of at least 0"


def _fault_of_columns(
    rows: pd.DataFrame, file: str, least_of: Mapping[str, int], others: tuple[str, ...] = ()
) -> str | None:
    missing = sorted({*least_of, *others} - set(rows.columns))
    if missing or rows.empty:
        return f"{file} has no {', '.join(missing) or 'rows'}"
    for name, least in least_of.items():
        if not pd.api.types.is_integer_dtype(rows[name]) or rows[name].isna().any() or rows[name].min() < least:
            return f"{file}: {name} must hold integers of at least {least}"
    return None
