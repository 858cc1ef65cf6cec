"""How many calls a recording holds."""

from __future__ import annotations

import pytest

from overhead_lens.capture.profiler import calls_recorded


@pytest.mark.parametrize(
    ("call_ns", "events", "calls"),
    [
        (100, 1, 2_000),
        (14_900, 1, 2_000),
        (15_100, 1, 1_986),
        (1_000_000, 5, 30),
        (7_000_000, 5, 4),
        (13_000_000, 5, 4),
        (50_000_000, 5, 2),
        (200_000_000, 5, 1),
        # 20 MB, 400 bytes an event.
        (1_000_000, 5_000, 10),
        (50_000_000, 140_000, 1),
    ],
)
def test_calls_of_a_recording(call_ns: float, events: int, calls: int) -> None:
    assert calls_recorded(call_ns, events) == calls
