"""Measures the user time of a page fault. Runs in the worker.

A thread that touches a fresh page leaves its program and comes back to it. The way there and back, and refilling the caches that
the operating system used, count as the program's own time (getrusage(2), ru_utime)::

    touching a page that is there   |t|
    touching a fresh one            |t| way in |--- system: find, clear and enter a page ---| way back, refill |
                                       ^^^^^^^^ user                                         ^^^^^^^^^^^^^^^^^^ user
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.usage import PAGES, fresh_pages

# The time of a thread is accounted by a tick of 1 to 10 ms.
_BUDGET_NS = 1_000_000_000


@operation
def measure_page_faults(_session: Session, budget_ns: int = _BUDGET_NS) -> dict[str, int]:
    """Touch fresh pages, and then as many that are there.

    Returns:
        ``faults``: fresh pages touched; ``user_ns``: their extra user time. Both 0 if the operating system does not account
        a thread's time.
    """
    if sys.platform != "linux":
        return {"faults": 0, "user_ns": 0}
    with fresh_pages() as (forget, touch):

        def touch_fresh() -> None:
            forget()
            touch()

        rounds, fresh_ns = _user_time(touch_fresh, budget_ns)
        touch()
        warm_rounds, warm_ns = _user_time(touch, budget_ns // 10)
    return {"faults": rounds * PAGES, "user_ns": max(0, fresh_ns - warm_ns * rounds // warm_rounds)}


def _user_time(action: Callable[[], None], budget_ns: int) -> tuple[int, int]:
    """Number of times ``action`` ran in about ``budget_ns``, and the thread's user time in ns meanwhile."""
    import resource

    end_ns = time.perf_counter_ns() + budget_ns
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_utime
    rounds = 0
    while rounds == 0 or time.perf_counter_ns() < end_ns:
        action()
        rounds += 1
    return rounds, round((resource.getrusage(resource.RUSAGE_THREAD).ru_utime - before) * 1e9)
