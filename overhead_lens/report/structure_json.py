"""JSON of a difference in structure (``overhead-lens/structure/1``)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from overhead_lens.compare.structure_model import SCHEMA, StructureDelta


def structure_document(delta: StructureDelta) -> dict[str, Any]:
    """JSON values of a difference; every duration in integer ns."""
    return {"schema": SCHEMA, "same": delta.is_same, **asdict(delta)}
