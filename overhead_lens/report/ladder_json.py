"""The JSON of an ablation ladder, ``overhead-lens/ladder/1``; durations are ns per call."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from overhead_lens.analysis.ladder import Ladder, layers

SCHEMA = "overhead-lens/ladder/1"


def ladder_document(ladder: Ladder) -> dict[str, Any]:
    """The document."""
    return {
        "schema": SCHEMA,
        "scenario": ladder.scenario,
        "variant": ladder.variant,
        "device": ladder.device_kind,
        "params": dict(ladder.params),
        "per": "call",
        "unit": "ns",
        "processes": ladder.processes,
        "rungs": [
            {"title": rung.kind.title, "against": rung.kind.against, **_rung(asdict(rung))} for rung in ladder.rungs
        ],
        "layers": [{"name": name, "ns": ns} for name, ns in layers(ladder)],
        "steps": [_step(asdict(step)) for step in ladder.steps],
        "sentence": ladder.sentence,
        "warnings": list(ladder.warnings),
        "environment": dict(ladder.environment),
        "directory": ladder.directory,
    }


def _step(step: dict[str, Any]) -> dict[str, Any]:
    return {**step.pop("kind"), **step}


def _rung(rung: dict[str, Any]) -> dict[str, Any]:
    published = rung.pop("published")
    first = published[0] if published else None
    return {**rung, "published": published, "published_us": first["ns"] / 1000 if first else None}
