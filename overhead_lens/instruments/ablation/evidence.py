"""Reads the timed blocks of rungs, ``ablation.parquet``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import ABLATION

if TYPE_CHECKING:
    import pandas as pd


class Ablated(Struct, frozen=True):
    """Reasons why rungs were not timed, by name."""

    reasons: dict[str, str] = {}


def read_ablation(capture: Capture) -> pd.DataFrame | None:
    """Blocks of the rungs of a compiled call; None if there is no file.

    Raises:
        UsageError: It is damaged.
    """
    path = capture.existing(ABLATION)
    if path is None:
        return None
    try:
        return read_rungs(path)
    except (OSError, ValueError) as error:
        raise capture.damaged(error) from error


def read_rungs(path: Path, others: Iterable[str] = ()) -> pd.DataFrame:
    """Blocks: ``process``, ``rung``, ``block``, ``calls``, ``wall_ns``, ``reference_ns`` and the columns ``others``."""
    from overhead_lens.captures.tables import BLOCK_COLUMNS, read_table

    return read_table(path, BLOCK_COLUMNS, ("rung", *others))


class RungTimes(Struct, frozen=True):
    """Timed blocks of rungs, and by name the reason if a rung was not measured, else None."""

    rows: list[dict[str, int | str]]
    reasons: Mapping[str, str | None]
