"""Writing a picture."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from overhead_lens.errors import MeasurementError


def save(figure: Any, target: Path) -> None:
    """Write a figure; the suffix of ``target`` says how (``.svg``, ``.png``, ``.pdf``).

    Raises:
        MeasurementError: It cannot be written.
    """
    try:
        with warnings.catch_warnings():
            # A name in a script that the font lacks is drawn as boxes; the terminal report has it in full.
            warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
            figure.savefig(target)
    except OSError as error:
        raise MeasurementError(f"cannot write {target}: {error.strerror or error}") from error
