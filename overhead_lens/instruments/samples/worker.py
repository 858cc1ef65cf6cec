"""Runs the measured loop over and over while a sampler is attached. Runs in the worker."""

from __future__ import annotations

import ctypes
import os
import select
import sys
from typing import Any

from overhead_lens.instruments.clock.worker import calls_per_block
from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.workload import Workload

_PR_SET_PTRACER = 0x59616D61


def allow_tracing_by(pid: int) -> bool:
    """Let process ``pid`` and its descendants attach where Yama forbids tracing anything but a child (prctl(2))."""
    if sys.platform != "linux":
        return False
    status: int = ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
    return status == 0


def spin_until_input(workload: Workload, count: int, stream: Any) -> int:
    """Run chunks of ``count`` calls until ``stream`` has something to read; returns the calls made."""
    calls = 0
    while not select.select([stream], [], [], 0)[0]:
        workload.run(count)
        calls += count
    return calls


@operation
def spin(session: Session, chunk_ns: int, tracer_pid: int) -> dict[str, Any]:
    """Reply, so that a sampler can attach; then run the loop until a line arrives."""
    allow_tracing_by(tracer_pid)
    session.announce({"pid": os.getpid()})
    calls = spin_until_input(session.workload, calls_per_block(session.call_ns, chunk_ns), session.requests)
    session.requests.readline()
    return {"calls": calls}
