"""Where a program stays for a moment when the sampler goes on after a rest.

The sampler keeps a schedule: it catches up with the stacks that were due while it rested, one right after the other, all at one
or two places of a step. So the program waits twice. In ``hold_until_resumed`` the sampler goes on; it catches up in the steps
that follow. Once it has, the program waits in ``hold_until_sampled`` until a stack of it is taken. Both part the stacks::

    a turn | hold_until_resumed | what was due, all at once | hold_until_sampled | the next turn
"""

from __future__ import annotations

import time

from overhead_lens.program.area import Area, Word

CATCH_UP, HOLD = "hold_until_resumed", "hold_until_sampled"
"""Names of the functions in the sampler's stacks."""

HOLD_FILE = "overhead_lens/program/hold.py"

_LONGEST_NS = 600_000_000
_LOOK_S = 0.001
_clock, _sleep = time.perf_counter_ns, time.sleep


def hold_until_resumed(area: Area) -> None:
    """Return when the recorder says that the sampler has gone on and taken a stack here; after 0.6 s in any case."""
    _hold(area, Word.RESUMED, area.read(Word.REQUESTED))


def hold_until_sampled(area: Area) -> None:
    """Return when the recorder says that the sampler has caught up and taken a stack here; after 0.6 s in any case."""
    request = area.read(Word.ANSWERED)
    area.write(Word.HELD, request)
    _hold(area, Word.RELEASED, request)


def _hold(area: Area, word: Word, request: int) -> None:
    limit_ns = _clock() + _LONGEST_NS
    while area.read(word) < request and not area.read(Word.REFUSED) and _clock() < limit_ns:
        _sleep(_LOOK_S)
