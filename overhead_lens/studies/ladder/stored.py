"""Reads a stored ladder: ``meta.json`` and ``ablation.parquet``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from overhead_lens.captures.directory import Kind, damaged, read_meta
from overhead_lens.captures.files import ABLATION
from overhead_lens.captures.model import Recorded
from overhead_lens.captures.upgrade import with_subject
from overhead_lens.instruments.ablation.record import read_rungs
from overhead_lens.subject import Subject


class LadderMeta(Recorded, frozen=True, kw_only=True):
    """``meta.json`` of a ladder.

    Attributes:
        reasons: Why a rung was not timed; None if it was.
        compile_options: Keyword arguments of torch.compile for every compiled rung.
    """

    subject: Subject
    names: list[Any]
    reasons: dict[str, str | None]
    summary: str = ""
    compile_options: dict[str, Any] | None = None


LADDER = Kind("ladder", "overhead-lens/ladder-capture/2", LadderMeta, {"overhead-lens/ladder-capture/1": with_subject})


def read_ladder(path: Path) -> tuple[LadderMeta, pd.DataFrame]:
    """Metadata and timed blocks of a stored ladder.

    Raises:
        UsageError: The directory holds no complete, sound ladder.
    """
    meta = read_meta(path, LADDER)
    try:
        rows = read_rungs(path / ABLATION, ("minor_faults",))
        # Earlier versions timed single steps beside the rungs.
        rows = rows[rows["rung"].isin([name for name in meta.names if isinstance(name, str)])]
        if rows.empty:
            raise ValueError(f"{ABLATION} has no rows of a rung")  # noqa: TRY301
        if not (pd.to_numeric(rows["minor_faults"], errors="coerce") >= 0).all():
            raise ValueError(f"{ABLATION}: minor_faults must hold numbers of at least 0")  # noqa: TRY301
    except FileNotFoundError:
        raise damaged("ladder", path, f"it has no {ABLATION}") from None
    except (OSError, ValueError) as error:
        raise damaged("ladder", path, error) from error
    return meta, rows
