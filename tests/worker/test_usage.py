"""What a process says of itself."""

from __future__ import annotations

import gc
import time

from overhead_lens.worker.usage import collected_ns, watch_collections


def test_collections_are_timed_from_when_they_are_watched() -> None:
    before = list(gc.callbacks)
    assert collected_ns() is None
    try:
        watch_collections()
        watch_collections()
        assert len(gc.callbacks) == len(before) + 1
        assert collected_ns() == 0
        begun_ns = time.perf_counter_ns()
        gc.collect()
        most_ns = time.perf_counter_ns() - begun_ns
        once_ns = collected_ns() or 0
        assert 0 < once_ns <= most_ns
        gc.collect()
        assert (collected_ns() or 0) > once_ns
    finally:
        gc.callbacks[:] = before
