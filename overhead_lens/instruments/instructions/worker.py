"""Runs the measured loop with callgrind switched on. Runs in the worker.

A *client request* is a sequence of instructions that does nothing on a processor and is known to valgrind (valgrind.h,
``VALGRIND_DO_CLIENT_REQUEST``; callgrind.h). A few bytes of machine code make it, since there may be no compiler, and torch's own
bindings switch the collection only: instrumentation would slow start-up and compilation down fifty times.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import platform
import sys
from typing import Any

from overhead_lens.errors import MeasurementError
from overhead_lens.worker.session import Session, operation

_LEAST_WARM_UP_CALLS = 3
_RUNNING_ON_VALGRIND = 0x1001
_CALLGRIND = ord("C") << 24 | ord("T") << 16
_DUMP = _CALLGRIND
_START = _CALLGRIND + 4
_STOP = _CALLGRIND + 5

# x86-64: request in rdi (pointer to six words), its answer in rax, 0 outside of valgrind.
_CODE = bytes.fromhex(
    "4889f8"  # mov rax, rdi
    "31d2"  # xor edx, edx
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi by 3, 13, 61, 51: 128 in all
    "4887db"  # xchg rbx, rbx
    "4889d0"  # mov rax, rdx
    "c3"  # ret
)


class Switch:
    """Callgrind's instrumentation of this process: off until started.

    Raises:
        MeasurementError: This process does not run under valgrind, or its processor's sequence is not known here.
    """

    def __init__(self) -> None:
        if sys.platform != "linux" or platform.machine() != "x86_64":
            raise MeasurementError(f"instructions are counted on Linux on x86-64 only, not on {platform.machine()}")
        try:
            self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        except OSError as error:
            raise MeasurementError(f"this system allows no memory for a client request: {error.strerror}") from error
        self._code.write(_CODE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        self._request = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(address)
        if not self._ask(_RUNNING_ON_VALGRIND):
            raise MeasurementError("this process does not run under valgrind")

    def start(self) -> None:
        """Count from here on."""
        self._ask(_START)

    def stop(self) -> None:
        """Count no more, and write what was counted."""
        self._ask(_STOP)
        self._ask(_DUMP)

    def _ask(self, request: int) -> int:
        words = (ctypes.c_size_t * 6)(request)
        return int(self._request(ctypes.addressof(words)))


@operation
def count(session: Session, calls: int, rounds: int) -> dict[str, Any]:
    """Let callgrind, under which this process runs, count ``calls`` calls and dump, ``rounds`` times, each after a warm-up.

    Each round begins with a new version of every type, so that addresses do not decide the count: CPython caches attributes by
    the type's version and the address of the name (Objects/typeobject.c, ``MCACHE_HASH``), and a collision costs some hundred
    instructions.

    Raises:
        MeasurementError: The process does not run under valgrind, or the call still compiles.
    """
    switch, workload = Switch(), session.workload
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
    return {}
