"""Upgrades ``meta.json`` of earlier schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Fields of schema 1 that now stand under ``instruments`` and ``subject``.
_INSTRUMENTS = ("samples", "page_faults", "trace", "guards", "peaks", "instructions")
_SUBJECT = ("scenario", "variant", "params", "compile", "device")


def subject_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The subject of schema 1, which spread it over the top level."""
    return {
        "kind": "scenario",
        "name": meta.get("scenario"),
        "variant": meta.get("variant", ""),
        "params": meta.get("params", {}),
        "compile": meta.get("compile", False),
        "device": meta.get("device", "cpu"),
    }


def with_subject(meta: Mapping[str, Any]) -> dict[str, Any]:
    """``meta`` of schema 1 with its subject in one field."""
    return {**meta, "subject": subject_of(meta)}


def capture_of_1(meta: Mapping[str, Any]) -> dict[str, Any]:
    """``overhead-lens/capture/1`` as ``overhead-lens/capture/2``."""
    other_fields = {
        name: value for name, value in meta.items() if name not in (*_SUBJECT, *_INSTRUMENTS, "not_ablated")
    }
    instruments = {name: meta[name] for name in _INSTRUMENTS if meta.get(name) not in (None, [], {})}
    if meta.get("page_faults"):
        instruments["page_faults"] = {"processes": meta["page_faults"]}
    if "not_ablated" in meta:
        instruments["ablation"] = {"reasons": meta["not_ablated"]}
    work = meta.get("work")
    return {
        **other_fields,
        "subject": subject_of(meta),
        "work": work if meta.get("work_known") else None,
        "units": work.get("units", 1) if isinstance(work, dict) else 1,
        "compile_options": (meta.get("compile_options") or {}) if meta.get("compile") else None,
        "instruments": instruments,
    }
