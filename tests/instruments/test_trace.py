"""How many calls a recording holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead_lens.instruments.trace import worker as profiler
from overhead_lens.instruments.trace.worker import calls_recorded
from overhead_lens.worker.loop import make_measured_loop
from overhead_lens.worker.workload import Workload


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


def test_a_call_that_the_warm_up_found_too_slow_is_timed_again(tmp_path: Path) -> None:
    class OfTenMilliseconds(Workload):
        def run(self, count: int) -> int:
            super().run(count)
            return 10_000_000 * count

    workload = OfTenMilliseconds(None, "", None, int, None, (), "cpu", make_measured_loop(0), None, None)
    # By the second that the warm-up found, one call would be recorded.
    assert profiler.trace(workload, str(tmp_path), 1e9, 0)["calls"] == 4
