"""Names the system call in which a thread waits for another one, where the C library's functions on the way have no names.

``sem_wait`` and its kin wait in functions that the C library does not export, so that py-spy has addresses alone::

    Thread.join (threading.py)                Thread.join (threading.py)
    0x7fef5aeaed90 (libc.so.6)                0x7fef5aeaed90 (libc.so.6)
    0x7fef5aea3f16 (libc.so.6)                futex (libc.so.6)

A stack does not say where a library is loaded. But the innermost address lies behind a ``syscall`` instruction, and the next one
behind a call of this instruction's function, or of a function that ends by jumping there. Their distance, and where in a page
they are, say which instructions these are. The system call's number stands before them: in ``mov $202, %eax``, or, from glibc
2.41 on, in ``push $202`` of a caller that hands it down. This is machine code of x86-64; elsewhere nothing is named.
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

_C_LIBRARY = re.compile(r"/libc[.-][^/]*$")

# From the call whose argument is the number down to the instruction.
_MOST_CALLERS = 4

_SYSCALL = re.compile(rb"\x0f\x05")
_CALL = 0xE8
_CALL_SIZE = 5
_JUMP = re.compile(rb"\xe9....", re.DOTALL)
_MOV_EAX = re.compile(rb"\xb8(....)", re.DOTALL)
_PUSH = re.compile(rb"\x68(....)", re.DOTALL)

# A number is loaded by one of the last instructions before it is used.
_LOADED_WITHIN = 16

# A function is at most so long, and ends by a jump only if it is short.
_LONGEST_FUNCTION = 4096
_LONGEST_JUMPING = 256
_MOST_JUMPS = 2


def waits(path: str, addresses: Sequence[int]) -> bool:
    """Whether a thread is in futex(2).

    Args:
        path: A library's file; only the C library's is looked at.
        addresses: Where the thread is in it, outermost first.
    """
    callers = len(addresses) > 1 and _C_LIBRARY.search(path)
    return bool(callers) and _waits(path, tuple(addresses[-_MOST_CALLERS - 1 :]))


@lru_cache(maxsize=65_536)
def _waits(path: str, addresses: tuple[int, ...]) -> bool:
    code, leaf = _code(path), addresses[-1]
    loaded_at = (leaf - place for place in code.returns.get(leaf % _PAGE, ()))
    return any(code.system_call([address - start for address in addresses]) == _FUTEX for start in loaded_at)


@dataclass(frozen=True, slots=True)
class _Code:
    """A library's file; a place is an offset in it.

    Attributes:
        content: All of it.
        returns: The places behind its ``syscall`` instructions, by their places in a page.
    """

    content: bytes
    returns: Mapping[int, Sequence[int]]

    def system_call(self, places: Sequence[int]) -> int | None:
        """The number of the system call at the end of a chain of return addresses (outermost first); None for none."""
        number = self._loaded(_MOV_EAX, places[-1] - 2)
        for caller, place in zip(places[-2::-1], places[:0:-1], strict=True):
            if not self._calls(caller, place):
                return None
            if number is None:
                number = self._loaded(_PUSH, caller - _CALL_SIZE)
            if number is not None:
                return number
        return None

    def _loaded(self, instruction: re.Pattern[bytes], end: int) -> int | None:
        """The number that an instruction just before a place loads."""
        matches = instruction.findall(self.content, max(0, end - _LOADED_WITHIN), end)
        return int.from_bytes(matches[-1], "little") if matches else None

    def _calls(self, caller: int, place: int) -> bool:
        """Whether the instruction before ``caller`` calls the function of ``place``, or one that ends by jumping there."""
        called = caller >= _CALL_SIZE and self.content[caller - _CALL_SIZE] == _CALL
        return called and self._reaches(self._target(caller), place, _MOST_JUMPS)

    def _reaches(self, start: int, place: int, jumps: int) -> bool:
        if start <= place < start + _LONGEST_FUNCTION:
            return True
        matches = _JUMP.finditer(self.content, max(0, start), max(0, start + _LONGEST_JUMPING)) if jumps else ()
        return any(self._reaches(self._target(jump.end()), place, jumps - 1) for jump in matches)

    def _target(self, behind: int) -> int:
        """Target address of the call or jump that ends at an address."""
        return behind + int.from_bytes(self.content[behind - 4 : behind], "little", signed=True)


@lru_cache(maxsize=16)
def _code(path: str) -> _Code:
    """A library's code; none if its file cannot be read."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        content = b""
    returns: defaultdict[int, list[int]] = defaultdict(list)
    for syscall in _SYSCALL.finditer(content):
        returns[syscall.end() % _PAGE].append(syscall.end())
    return _Code(content, returns)
