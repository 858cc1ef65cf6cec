"""``overhead-lens/structure/1``: which operators, kernels and launches came, went or changed between two traces."""

from __future__ import annotations

from typing import Literal

from overhead_lens.documents.common import Document, fill
from overhead_lens.traces.structure.model import Divided, Side, StructureChange, StructureDelta, Swap


class StructureDocument(Document, frozen=True, kw_only=True):
    """The difference of two traces; durations in whole ns, per step where both have steps."""

    schema: Literal["overhead-lens/structure/1"] = "overhead-lens/structure/1"
    same: bool
    base: Side
    new: Side
    per_step: bool
    changes: list[StructureChange]
    swaps: list[Swap]
    divided: list[Divided]


def structure_document(delta: StructureDelta) -> StructureDocument:
    """The document of a difference."""
    return fill(StructureDocument, delta, same=delta.is_same)
