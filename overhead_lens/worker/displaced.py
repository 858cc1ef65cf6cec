"""A workload whose calls find the caches as a real program leaves them. Runs in the worker.

Between two calls memory is read, which takes the place of what they had left in the caches that hold data, or data and
instructions. Branch predictors and address translations of code are as the loop leaves them: a real program may be slower
still. What stands around a call, its clock and the loop that calls it once, is timed as often without the call, and taken off::

    read memory | clock, loop [call], clock | read memory | clock, loop [], clock | ...
"""

from __future__ import annotations

import ctypes
import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

from overhead_lens.worker.workload import Workload, calls_within

# Reading can take 5,000 times as long as a call: a run may last this many times longer than its calls are meant to.
_LONGER_AT_MOST = 10
_READ_AT_FIRST = 5

# Loops with a call per empty loop, and the least number of empty loops.
_CALLS_PER_EMPTY, _LEAST_EMPTY = 4, 4


def _nothing() -> None:
    """No memory is read."""


@dataclass(frozen=True, slots=True)
class DisplacedWorkload(Workload):
    """A workload that displaces the caches before every call.

    Attributes:
        displacing_ns: The time of one read.
    """

    displace: Callable[[], object] = _nothing
    displacing_ns: int = 0

    def run(self, count: int) -> int:
        """Make ``count`` calls; returns the wall time of these alone in ns."""
        empty = max(_LEAST_EMPTY, count // _CALLS_PER_EMPTY)
        calls_ns = sum(self._once_ns(1) for _ in range(count))
        empty_ns = sum(self._once_ns(0) for _ in range(empty))
        return max(1, calls_ns - empty_ns * count // empty)

    def calls_within(self, call_ns: float, duration_ns: int) -> int:
        """At most as many calls as fit, with their reads, into ten times ``duration_ns``: a call can appear to take no time."""
        most = _LONGER_AT_MOST * duration_ns // max(1, self.displacing_ns)
        return max(1, min(most, calls_within(call_ns, duration_ns)))

    def _once_ns(self, calls: int) -> int:
        self.displace()
        start_ns = time.perf_counter_ns()
        self.loop(self.call, self.args, calls)
        return time.perf_counter_ns() - start_ns


def displaced(workload: Workload, size_bytes: int) -> Workload:
    """The workload with so much memory read before every call; as it is for 0."""
    if not size_bytes:
        return workload
    half = max(1, size_bytes // 2)
    one, other = ctypes.create_string_buffer(half), ctypes.create_string_buffer(half)
    for each in (one, other):
        # Memory that was never written is one page of zeros, however much of it there is.
        ctypes.memset(each, 1, half)
    compare = ctypes.CDLL(None).memcmp
    compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    addresses = ctypes.addressof(one), ctypes.addressof(other)

    def displace(_buffers: object = (one, other)) -> object:
        return compare(*addresses, half)

    fields = {field.name: getattr(workload, field.name) for field in dataclasses.fields(Workload)}
    return DisplacedWorkload(
        **fields, displace=displace, displacing_ns=min(_ns_of(displace) for _ in range(_READ_AT_FIRST))
    )


def _ns_of(call: Callable[[], object]) -> int:
    start_ns = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - start_ns
