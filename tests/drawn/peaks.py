"""Drawn peaks of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from overhead_lens.instruments.peaks.record import Peaks


def peaks(values: Mapping[str, Any]) -> Peaks:
    """As a worker replies them or a capture holds them."""
    return msgspec.convert(values, Peaks)
