"""Names the system call in which a thread waits for another one, where the C library's functions on the way have no names.

``sem_wait`` and its kin wait in functions that the C library does not export, so that py-spy has addresses alone::

    Thread.join (threading.py)                Thread.join (threading.py)
    0x7fef5aeaed90 (libc.so.6)                0x7fef5aeaed90 (libc.so.6)
    0x7fef5aea3f16 (libc.so.6)                futex (libc.so.6)

Where a library is loaded is not in a stack. The innermost address lies behind a ``syscall`` instruction, and the next one behind a
call of the function that has this instruction: their distance, and where they lie in a page, say which instructions they are. The
system call's number stands before them: in ``mov $202, %eax``, or, from glibc 2.41 on, in ``push $202`` of a caller that hands it
down. Machine code of x86-64; elsewhere nothing is named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_FUTEX = 202
_PAGE = 4096
_LONGEST_FUNCTION = 4096
_SHORT_FUNCTION = 256
_MOST_JUMPS = 2
_LONGEST_WAY = 4

_C_LIBRARY = re.compile(r"/libc[.-][^/]*$")

_SYSCALL = b"\x0f\x05"
_CALL = 0xE8
_CALL_SIZE = 5
_MOV_EAX = re.compile(rb"\xb8(....)", re.DOTALL)
_JUMP = re.compile(rb"\xe9....", re.DOTALL)
_PUSH = re.compile(rb"\x68(....)", re.DOTALL)
_MOST_BETWEEN = 16


def waits(path: str, addresses: Sequence[int]) -> bool:
    """Whether a thread is in futex(2).

    Args:
        path: A C library's file.
        addresses: Where the thread is in it, outermost first.
    """
    return bool(_C_LIBRARY.search(path)) and len(addresses) > 1 and _waits(path, tuple(addresses[-_LONGEST_WAY:]))


@lru_cache(maxsize=65_536)
def _waits(path: str, addresses: tuple[int, ...]) -> bool:
    code = _code(path)
    leaf = addresses[-1]
    return any(
        code.system_call([address - leaf + place for address in addresses]) == _FUTEX
        for place in code.returns.get(leaf % _PAGE, ())
    )


@dataclass(frozen=True, slots=True)
class _Code:
    """A library's file.

    Attributes:
        content: All of it; a place is an offset.
        returns: The places behind its ``syscall`` instructions, by their place in a page.
    """

    content: bytes
    returns: Mapping[int, Sequence[int]]

    def system_call(self, places: Sequence[int]) -> int | None:
        """The system call whose number is loaded on the way that ends at ``places[-1]``; None where there is no such way."""
        number = self._number(_MOV_EAX, places[-1] - len(_SYSCALL))
        for caller, place in zip(places[-2::-1], places[:0:-1], strict=True):
            if not self._calls(caller, place):
                return None
            if number is None:
                number = self._number(_PUSH, caller - _CALL_SIZE)
            if number is not None:
                return number
        return None

    def _calls(self, caller: int, place: int) -> bool:
        """Whether the instruction before ``caller`` calls the function of ``place``, or one that ends by jumping there."""
        called = caller - _CALL_SIZE >= 0 and self.content[caller - _CALL_SIZE] == _CALL
        return called and self._reaches(self._target(caller), place, _MOST_JUMPS)

    def _reaches(self, start: int, place: int, jumps: int) -> bool:
        if start <= place < start + _LONGEST_FUNCTION:
            return True
        found = _JUMP.finditer(self.content, max(0, start), max(0, start) + _SHORT_FUNCTION) if jumps else ()
        return any(self._reaches(self._target(jump.end()), place, jumps - 1) for jump in found)

    def _target(self, behind: int) -> int:
        """Where the call or jump that ends at a place goes."""
        return behind + int.from_bytes(self.content[behind - 4 : behind], "little", signed=True)

    def _number(self, loading: re.Pattern[bytes], end: int) -> int | None:
        """The last number that is loaded by an instruction just before a place."""
        found = loading.findall(self.content, max(0, end - _MOST_BETWEEN), end)
        return int.from_bytes(found[-1], "little") if found else None


@lru_cache(maxsize=16)
def _code(path: str) -> _Code:
    try:
        content = Path(path).read_bytes()
    except OSError:
        content = b""
    returns: defaultdict[int, list[int]] = defaultdict(list)
    for found in re.finditer(re.escape(_SYSCALL), content):
        returns[found.end() % _PAGE].append(found.end())
    return _Code(content, returns)
