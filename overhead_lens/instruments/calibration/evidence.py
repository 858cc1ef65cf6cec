"""Reads the calibration of a capture, ``calibration.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import CALIBRATION


def read_calibration(capture: Capture) -> dict[str, Any] | None:
    """The calibration that a capture was recorded with; None without a file.

    Raises:
        UsageError: The file holds something else.
    """
    path = capture.existing(CALIBRATION)
    if path is None:
        return None
    try:
        calibration = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise capture.damaged(f"{CALIBRATION}: {error}") from error
    rows = calibration.get("rows") if isinstance(calibration, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) and _is_whole(row) for row in rows):
        raise capture.damaged(f"{CALIBRATION} holds no calibration")
    return dict(calibration)


def _is_whole(row: Mapping[str, Any]) -> bool:
    """Whether a row has all columns of its kind."""
    more = {"bytes", "copy_ns"} if "bytes" in row else {"outer", "nested", "others", "span_ns"}
    of_kind = {"evaluated"} if row.get("kind") == "backward" else set()
    return {"flags", "kind", "name", "bare_ns", "traced_ns"} | more | of_kind <= set(row)
