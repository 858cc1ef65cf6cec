"""Runs the measured loop over and over while a sampler is attached. Runs in the worker."""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from typing import Any

import torch

from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.workload import Workload

_PR_SET_PTRACER = 0x59616D61

# A sampler that keeps pace lets a chunk run for half of its time; while it reads symbols or catches up, for a tenth.
_HELD = 4
_STEADY_CHUNKS = 3
_SETTLING_AT_MOST_NS = 2_000_000_000


def settle(workload: Workload, count: int, call_ns: float) -> None:
    """Run chunks of ``count`` calls until the sampler keeps pace; stacks with this frame do not count.

    The sampler holds the process while it reads the symbols of a library, at the first stack that passes through it. It then
    takes the stacks that were due meanwhile, one right after the other, while the loop hardly moves::

        | torch's libraries | catching up | chunk | chunk | chunk | measured ...
    """
    started_ns = time.perf_counter_ns()
    _pass_through_torch(round(count * call_ns))
    steady = 0
    while steady < _STEADY_CHUNKS and time.perf_counter_ns() - started_ns < _SETTLING_AT_MOST_NS:
        steady = steady + 1 if workload.run(count) < _HELD * count * call_ns else 0


def _pass_through_torch(budget_ns: int) -> None:
    """Add for a while: a compiled call comes through some of torch's libraries too rarely to have them read at once."""
    one = torch.ones(1, device="cpu")
    end_ns = time.perf_counter_ns() + budget_ns
    while time.perf_counter_ns() < end_ns:
        one.add(1)


@operation
def allow_tracing(_session: Session, tracer_pid: int) -> dict[str, Any]:
    """Let a sampler attach, which Yama forbids all but a parent (prctl(2)); replies with the process that it is to attach to."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(tracer_pid), 0, 0, 0)
    return {"pid": os.getpid()}


@operation
def spin(session: Session, chunk_ns: int) -> dict[str, Any]:
    """Run the loop until a line arrives; replies first, when the attached sampler keeps pace."""
    count = session.workload.calls_within(session.call_ns, chunk_ns)
    settle(session.workload, count, session.call_ns)
    session.announce({"since_ns": time.monotonic_ns(), "call_ns": session.call_ns})
    while not select.select([session.requests], [], [], 0)[0]:
        session.workload.run(count)
    session.requests.readline()
    return {}
