"""Reads a stored sweep: ``meta.json`` and ``clock.parquet``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from msgspec import Struct

from overhead_lens.captures.directory import Kind, damaged, read_meta
from overhead_lens.captures.files import CLOCK
from overhead_lens.captures.model import Recorded
from overhead_lens.captures.tables import BLOCK_COLUMNS, read_table
from overhead_lens.captures.upgrade import subject_of
from overhead_lens.scenario import Work
from overhead_lens.subject import Subject


class SizePoint(Struct, frozen=True):
    """One size: the parameters and the work of a call."""

    params: dict[str, Any]
    work: Work


class Against(Struct, frozen=True):
    """The size that time is fitted against (a swept parameter, ``bytes`` or ``flops``), by point."""

    name: str
    sizes: list[int]


class SweepMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of a sweep.

    Attributes:
        subject: The scenario at its first point; without a variant where several are swept.
        points: In the order of ``point`` in the blocks.
        unsettled: Calls that had not settled after their warm-up.
    """

    subject: Subject
    variants: list[str]
    points: list[SizePoint]
    swept: dict[str, list[int]]
    against: Against
    unsettled: int = 0
    summary: str = ""
    work_known: bool = False
    compile_options: dict[str, Any] | None = None


def _of_1(meta: Mapping[str, Any]) -> dict[str, Any]:
    points = meta.get("points")
    first = points[0] if isinstance(points, list) and points and isinstance(points[0], dict) else {}
    return {**meta, "subject": {**subject_of(meta), "params": first.get("params", {})}}


SWEEP = Kind("sweep", "overhead-lens/sweep-capture/2", SweepMeta, {"overhead-lens/sweep-capture/1": _of_1})


def read_sweep(path: Path) -> tuple[SweepMeta, pd.DataFrame]:
    """Metadata and timed blocks of a stored sweep.

    Raises:
        UsageError: The directory holds no complete, sound sweep.
    """
    meta = read_meta(path, SWEEP)
    try:
        return meta, read_table(path / CLOCK, {**BLOCK_COLUMNS, "point": 0}, ("variant",))
    except (OSError, ValueError) as error:
        raise damaged("sweep", path, error) from error
