"""Reads the timed blocks of a capture, ``clock.parquet``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import CLOCK
from overhead_lens.captures.tables import BLOCK_COLUMNS, read_table

_NOT_IN_ALL = ("steady_ns", "delayed_ns", "contended_ns")


def read_blocks(capture: Capture) -> pd.DataFrame:
    """All timed blocks, with the columns of ``files.py``.

    Raises:
        UsageError: The file is missing or damaged.
    """
    try:
        rows = read_table(capture.path / CLOCK, {**BLOCK_COLUMNS, "minor_faults": 0})
        for name in _NOT_IN_ALL:
            values = rows.get(name, pd.Series(0))
            if not pd.api.types.is_integer_dtype(values) or (values < 0).any():
                raise ValueError(f"{CLOCK}: {name} must hold integers of at least 0")  # noqa: TRY301
    except (OSError, ValueError) as error:
        raise capture.damaged(error) from error
    return rows


def as_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The table of ``clock.parquet``: int64 throughout."""
    table: pd.DataFrame = pd.DataFrame(list(rows)).astype("int64")
    return table
