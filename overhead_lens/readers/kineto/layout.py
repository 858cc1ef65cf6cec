"""What the scanner fills, and the scanner as machine code.

``scanner.py``, which loads numba, is imported where it has to be compiled, and only there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from overhead_lens.machine_code import MachineCode
from overhead_lens.readers.kineto.event import MEMORY_EVENT
from overhead_lens.readers.kineto.memory import ARGUMENTS as MEMORY
from overhead_lens.readers.kineto.work import DECIMAL, WHOLE

DEFERRED = 3

# Status that `scan` returns.
END_OF_ARRAY, NEED_TEXT, NEED_ROWS, NEED_TABLE = 0, 1, 2, 3

# Counters. LOST counts bytes: after a damaged entry, how many from the current position on are known to begin no entry.
ENTRIES, DAMAGED, NO_PHASE, BEGIN_END, MISSING_DURATION, NEGATIVE_DURATION, STRAY_COMMA, CUT_OFF, LOST, COMMA = range(
    10
)
SAID = 10  # rows of what arguments say in use
COUNTER_COUNT = 11

# Numbers of a row, one column each.
START, DUR, CORRELATION, SEQUENCE, DEVICE, STREAM, EXTERNAL, ARGS_AT, ARGS_SIZE = range(9)
NUMBER_COUNT = 9
# Codes of a row: indices into the string table.
NAME, CAT, PID, TID = range(4)
CODE_COUNT = 4

FIELD_COUNT = 39
"""Fields of the entry being scanned; ``scanner.py`` names them."""

SAID_COUNT = 6
"""What device work says of itself, and as much an allocation."""

_DEPENDS = (__name__, "overhead_lens.readers.kineto.event", "overhead_lens.readers.kineto.memory")
scan = MachineCode("overhead_lens.readers.kineto.scanner:scan", results=3, depends=_DEPENDS)
rehash = MachineCode("overhead_lens.readers.kineto.scanner:rehash", results=0, depends=_DEPENDS)
intern = MachineCode("overhead_lens.readers.kineto.scanner:intern", depends=_DEPENDS)


def scratch() -> tuple[Any, tuple[Any, ...]]:
    """Scratch space for the fields of an entry, and the names that ``scan`` looks for."""
    arguments = ("correlation", "Sequence number", "device", "stream", "External id", "external id", "name")
    names = (*arguments, "thread_name", MEMORY_EVENT, *WHOLE, *DECIMAL, *MEMORY)
    return np.zeros(FIELD_COUNT, dtype=np.int64), tuple(np.frombuffer(name.encode(), dtype=np.uint8) for name in names)
