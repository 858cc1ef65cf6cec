"""Runs the measured loop with callgrind switched on. Runs in the worker."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instructions.switch import Switch
from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.workload import Workload

_LEAST_WARM_UP_CALLS = 3


def count_instructions(workload: Workload, calls: int, rounds: int) -> None:
    """Let callgrind count ``calls`` calls and dump, ``rounds`` times, each after a warm-up.

    Each round begins with a new version of every type, so that addresses do not decide the count: CPython caches attributes by
    the type's version and the address of the name (Objects/typeobject.c, ``MCACHE_HASH``), and a collision costs some hundred
    instructions.

    Raises:
        MeasurementError: The process does not run under valgrind, or the call still compiles.
    """
    switch = Switch()
    workload.run(_LEAST_WARM_UP_CALLS)
    compiled = workload.compile_count()
    for _ in range(rounds):
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(object))
        workload.run(max(calls, _LEAST_WARM_UP_CALLS))
        gc.collect()
        gc.freeze()
        workload.run(max(calls // 10, _LEAST_WARM_UP_CALLS))
        switch.start()
        workload.loop(workload.call, workload.args, calls)
        switch.stop()
    if workload.compile_count() != compiled:
        raise MeasurementError("the call was compiled while its instructions were counted")


@operation
def count(session: Session, calls: int, rounds: int) -> dict[str, Any]:
    """Count the measured loop by callgrind, under which this process runs."""
    count_instructions(session.workload, calls, rounds)
    return {}
