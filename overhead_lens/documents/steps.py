"""``overhead-lens/steps/1``: the difference of two runs of a program; durations in ns per step."""

from __future__ import annotations

from typing import Literal

from overhead_lens.contract import ShareOfTime
from overhead_lens.documents.common import Document, fill
from overhead_lens.documents.delta import CategoryDelta, WallDelta
from overhead_lens.documents.run import RunDocument, run_document
from overhead_lens.studies.run.delta import RunDelta


class StepsDocument(Document, frozen=True, kw_only=True):
    """The difference of two runs; the categories' ``delta_ns`` sum to the wall's."""

    schema: Literal["overhead-lens/steps/1"] = "overhead-lens/steps/1"
    per: Literal["step", "run"]
    base: RunDocument
    new: RunDocument
    verdict: str
    margin_share: ShareOfTime
    wall: WallDelta
    host: list[CategoryDelta]
    blame: list[str]
    sentence: str
    warnings: list[str]


def steps_document(delta: RunDelta) -> StepsDocument:
    """The document of a difference of two runs."""
    wall = WallDelta(delta.base.wall.ns, delta.new.wall.ns, delta.wall_delta_ns, delta.wall_ci95_ns, delta.ratio)
    both = {"base": run_document(delta.base), "new": run_document(delta.new)}
    return fill(StepsDocument, delta, wall=wall, **both)
