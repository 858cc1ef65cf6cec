"""Reads the timed blocks of a capture, ``clock.parquet``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import CLOCK
from overhead_lens.captures.tables import BLOCK_COLUMNS, read_table

_NOT_IN_ALL = {"steady_ns": 0, "delayed_ns": 0, "contended_ns": 0}


def read_blocks(capture: Capture) -> pd.DataFrame:
    """All timed blocks, with the columns of ``files.py``.

    Raises:
        UsageError: The file is missing or damaged.
    """
    try:
        return read_table(capture.path / CLOCK, {**BLOCK_COLUMNS, "minor_faults": 0}, optional=_NOT_IN_ALL)
    except (OSError, ValueError) as error:
        raise capture.damaged(error) from error


def as_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The table of ``clock.parquet``: int64 throughout."""
    table: pd.DataFrame = pd.DataFrame(list(rows)).astype("int64")
    return table
