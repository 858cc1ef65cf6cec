"""What the scanner fills, and the scanner as machine code.

``scanner.py``, which loads numba, is imported where it has to be compiled, and only there.
"""

from __future__ import annotations

from overhead_lens.machine_code import MachineCode

DEFERRED = 3

# Status that `scan` returns.
END_OF_ARRAY, NEED_TEXT, NEED_ROWS, NEED_TABLE = 0, 1, 2, 3

# Counters. LOST counts bytes: after a damaged entry, how many from the current position on are known to begin no entry.
ENTRIES, DAMAGED, NO_PHASE, BEGIN_END, MISSING_DURATION, NEGATIVE_DURATION, STRAY_COMMA, CUT_OFF, LOST, COMMA = range(
    10
)
DETAILS = 10  # rows of details in use
COUNTER_COUNT = 11

# Numbers of a row, one column each.
START, DUR, CORRELATION, SEQUENCE, DEVICE, STREAM, EXTERNAL, ARGS_AT, ARGS_SIZE = range(9)
NUMBER_COUNT = 9
# Codes of a row: indices into the string table.
NAME, CAT, PID, TID = range(4)
CODE_COUNT = 4

FIELD_COUNT = 39 + 11 * (2 + 4 * 33)
"""Fields of the entry being scanned; ``scanner.py`` names them."""

DETAIL_COUNT = 6
"""Details of device work, and as many of an allocation."""

_DEPENDS = (__name__, *(f"overhead_lens.readers.kineto.{name}" for name in ("event", "memory", "work")))
scan = MachineCode("overhead_lens.readers.kineto.scanner:scan", results=3, depends=_DEPENDS)
rehash = MachineCode("overhead_lens.readers.kineto.scanner:rehash", results=0, depends=_DEPENDS)
intern = MachineCode("overhead_lens.readers.kineto.scanner:intern", depends=_DEPENDS)
