"""``--allow-mismatch``, and ``--force`` in its old meaning."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from overhead_lens.terminal.command import ANALYSIS, deprecated, option

AllowMismatch = Annotated[
    bool, option(ANALYSIS, "Compare even if machine, versions or sizes differ.", "--allow-mismatch")
]


def allows_mismatch(*, force: bool, allow_mismatch: bool, files: Iterable[Path | None]) -> bool:
    """Whether captures of different machines are compared.

    ``--force`` overwrites files; where there is none to overwrite it still means ``--allow-mismatch``, as it did before.
    """
    if allow_mismatch or not force or any(file is not None and file.exists() for file in files):
        return allow_mismatch
    deprecated("--force without a file to overwrite", "--allow-mismatch")
    return True
