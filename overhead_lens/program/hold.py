"""Where a program stays for a moment when the sampler goes on after a rest.

The sampler keeps a schedule: it catches up with the stacks that were due while it rested, one right after the other. The program
waits here until the recorder says that this is over, so that these stacks show this function and differ from the stacks of the
steps. They also part the stacks of one turn from those of the next.

The recorder holds the program no longer than the sampler rested: for three or four steps, if they are long. A recorder that
is gone holds nothing.
"""

from __future__ import annotations

import os
import time

from overhead_lens.program.area import Area, Word

HOLD = "hold_until_sampled"
"""Name of the function in the sampler's stacks."""

HOLD_FILE = "overhead_lens/program/hold.py"

# For a recorder that stands still. Steps of a second leave up to 1,100 stacks overdue, of 2 to 4 ms each.
_LONGEST_NS = 10_000_000_000
_LOOK_S = 0.001
_clock, _sleep, _parent = time.perf_counter_ns, time.sleep, os.getppid
_RECORDER = _parent()


def hold_until_sampled(area: Area) -> None:
    """Return when the recorder says that the sampler has caught up and taken a stack here; after 10 s in any case."""
    request, limit_ns = area.read(Word.ANSWERED), _clock() + _LONGEST_NS
    area.write(Word.HELD, request)
    while area.read(Word.RELEASED) < request and not area.read(Word.REFUSED):
        if _parent() != _RECORDER or _clock() >= limit_ns:
            return
        _sleep(_LOOK_S)
