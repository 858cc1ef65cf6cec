"""Writes a capture's tables as parquet, and reads them with every column checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Least values of the columns that every timed block has.
BLOCK_COLUMNS: Mapping[str, int] = {"process": 0, "block": 0, "calls": 1, "wall_ns": 0, "reference_ns": 1}


def write_table(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows that have the same keys."""
    import pandas as pd

    pd.DataFrame(list(rows)).to_parquet(path, index=False)


def read_table(
    path: Path, least: Mapping[str, int], others: Iterable[str] = (), optional: Mapping[str, int] | None = None
) -> pd.DataFrame:
    """Read a table with at least one row.

    Args:
        least: Integer columns and their least values.
        optional: The same of columns that may be missing.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not such a table; the message names the file and the column.
    """
    import pandas as pd

    rows = pd.read_parquet(path)
    missing = sorted({*least, *others} - set(rows.columns))
    if missing or rows.empty:
        raise ValueError(f"{path.name} has no {', '.join(missing) or 'rows'}")
    present = {name: smallest for name, smallest in (optional or {}).items() if name in rows.columns}
    for name, smallest in {**least, **present}.items():
        if not pd.api.types.is_integer_dtype(rows[name]) or rows[name].isna().any() or rows[name].min() < smallest:
            raise ValueError(f"{path.name}: {name} must hold integers of at least {smallest}")
    return rows
