"""What a trace's analysis looks like over time, for drawing."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True, slots=True)
class TracePieces:
    """Frames over the whole window, times in ns since the earliest event.

    Attributes:
        host: ``pid``, ``tid``, ``start_ns``, ``dur_ns``, ``category``: consecutive pieces of every host thread.
        idle: ``device``, ``start_ns``, ``dur_ns``, ``blame``: idle time of every device inside its span.
        queue: ``device``, ``start_ns``, ``depth``: launches that were called and had not started, from each time on.
    """

    host: pd.DataFrame
    idle: pd.DataFrame
    queue: pd.DataFrame
