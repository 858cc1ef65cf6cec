"""Where a program stays for a moment when the sampler goes on after a rest.

The sampler keeps a schedule: it catches up with the stacks that were due while it rested, one right after the other. The program
waits here until that is over, so that these stacks show this function and are told apart from those of the steps. They also part
the stacks of one turn from those of the next.
"""

from __future__ import annotations

import time

HOLD = "hold_until_sampled"
"""Name of the function in the sampler's stacks."""

HOLD_FILE = "overhead_lens/program/hold.py"

_LONGEST_NS = 600_000_000
# What stops the calling thread for longer is the sampler.
_STOP_NS = 150_000
# The sampler has caught up when it lets the thread run for so long.
_QUIET_NS = 3_000_000


def hold_until_sampled() -> None:
    """Return when the calling thread has been stopped and then left alone for 3 ms; after 0.6 s in any case."""
    clock = time.perf_counter_ns
    last_ns = clock()
    limit_ns = last_ns + _LONGEST_NS
    stopped_ns = 0
    while last_ns < limit_ns:
        now_ns = clock()
        if now_ns - last_ns > _STOP_NS:
            stopped_ns = now_ns
        elif stopped_ns and now_ns - stopped_ns > _QUIET_NS:
            return
        last_ns = now_ns
