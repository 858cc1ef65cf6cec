"""Short turns for a sampler and its target, which share a core.

A kernel that ticks 250 times a second lets whoever runs go on for up to 4 ms unless someone else wakes up meanwhile. py-spy, when
it is behind its schedule, does not sleep: it lets go of its target and stops it again, and the target has not run in between. Of
two targets sampled at once, each on its core, four stacks of ten were the ones before once more. What wakes up on the core every
millisecond and does nothing makes the kernel choose anew, and a target that asks for turns as long is chosen soon after it is let
go of: one stack of ten is repeated then. Only where two are sampled at once: a target that is alone, whether the other core is
busy or not, is stopped while it still fetches what py-spy displaced from the caches, and its shares are wrong (docs/accuracy.md).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
import sys
import threading
import time
from collections.abc import Iterator

_TURN_NS = 1_000_000

# sched_setattr(2): its number, and the first version of its argument (size, policy, flags, nice, priority, and for
# SCHED_OTHER the length of a turn in ns (since Linux 6.12), two fields of deadlines). 0 is the kernel's own length.
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


@contextlib.contextmanager
def short_turns(pid: int, core: int) -> Iterator[None]:
    """Have whoever shares ``core`` with the thread ``pid`` take short turns with it; what the system cannot do is left out.

    A thread of this process wakes up on the core meanwhile, for some 2 % of its time.
    """
    ended = threading.Event()
    waking = threading.Thread(target=_wake, args=(core, ended), daemon=True)
    _ask_for_turns(pid, _TURN_NS)
    waking.start()
    try:
        yield
    finally:
        ended.set()
        waking.join()
        _ask_for_turns(pid, 0)


def _wake(core: int, ended: threading.Event) -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setaffinity(0, {core})
        while not ended.is_set():
            time.sleep(_TURN_NS / 1e9)


def _ask_for_turns(pid: int, turn_ns: int) -> None:
    number = _SCHED_SETATTR.get(platform.machine()) if sys.platform == "linux" else None
    if number is None:
        return
    with contextlib.suppress(OSError):
        nice = os.getpriority(os.PRIO_PROCESS, pid)
        asked = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.sched_getscheduler(pid), 0, nice, 0, turn_ns, 0, 0)
        ctypes.CDLL(None).syscall(number, pid, asked, 0)
