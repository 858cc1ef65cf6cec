"""Switches callgrind on and off from inside the process that it watches.

A *client request* is a sequence of instructions that does nothing on a processor and is known to valgrind (valgrind.h,
``VALGRIND_DO_CLIENT_REQUEST``; callgrind.h). A few bytes of machine code make it, since there may be no compiler, and torch's own
bindings switch the collection only: instrumentation would slow start-up and compilation down fifty times.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys

from overhead_lens.errors import MeasurementError

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
