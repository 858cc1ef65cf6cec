"""Where a program stays for a moment when the sampler goes on after a rest.

The sampler keeps a schedule: it catches up with the stacks that were due while it rested, one right after the other. The program
waits here until the recorder says that this is over, so that these stacks show this function and differ from the stacks of the
steps. They also part the stacks of one turn from those of the next.
"""

from __future__ import annotations

import time

from overhead_lens.program.area import Area, Word

HOLD = "hold_until_sampled"
"""Name of the function in the sampler's stacks."""

HOLD_FILE = "overhead_lens/program/hold.py"

_LONGEST_NS = 600_000_000
_LOOK_S = 0.001
_clock, _sleep = time.perf_counter_ns, time.sleep


def hold_until_sampled(area: Area) -> None:
    """Return when the recorder says that the sampler has caught up and taken a stack here; after 0.6 s in any case."""
    request, limit_ns = area.read(Word.ANSWERED), _clock() + _LONGEST_NS
    area.write(Word.HELD, request)
    while area.read(Word.RELEASED) < request and not area.read(Word.REFUSED) and _clock() < limit_ns:
        _sleep(_LOOK_S)
