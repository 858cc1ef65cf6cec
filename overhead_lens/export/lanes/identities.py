"""Process and thread numbers that viewers accept, for the names that traces give them."""

from __future__ import annotations

from collections.abc import Iterable

from overhead_lens.export.lanes.model import ThreadKey

_INT32_MAX = 2**31 - 1
_FIRST_STAND_IN = 1_000_000_000


class Identities:
    """Numbers for processes and threads.

    A number of the trace is kept where it can be: viewers want positive int32 and take 0 for the idle task, and a thread
    number must not be used by another process's thread nor be another process's number (a process's own number is its
    main thread). Traces also have text there, or the number of a device. Whatever does not fit gets a stand-in.

    Attributes:
        processes, threads: The number of each.
    """

    def __init__(self, threads: Iterable[ThreadKey]) -> None:
        self._used: set[int] = set()
        self._stand_in = _FIRST_STAND_IN
        self.threads: dict[ThreadKey, int] = {}
        keys = list(dict.fromkeys(threads))
        self.processes = {pid: self._number_for(pid) for pid in dict.fromkeys(pid for pid, _ in keys)}
        for key in keys:
            own = self.processes[key[0]]
            is_main = key[1] == str(own) and key[0] == key[1]
            self.threads[key] = own if is_main else self._number_for(key[1])

    def fresh(self) -> int:
        """A number that nothing else has."""
        while self._stand_in in self._used:
            self._stand_in += 1
        self._used.add(self._stand_in)
        return self._stand_in

    def _number_for(self, name: str) -> int:
        number = int(name) if name.isascii() and name.isdecimal() and len(name) < 11 else 0
        if not 0 < number <= _INT32_MAX or number in self._used:
            return self.fresh()
        self._used.add(number)
        return number
