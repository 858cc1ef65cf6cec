"""The garbage collector of a measuring process while it gets ready.

Standard library only.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Generous for modules, which stay; garbage in cycles is still found.
_RARELY = (100_000, 50, 50)


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Run the collector rarely: it takes a sixth of importing torch and of loading torch.compile's cache."""
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(*_RARELY)
    ours = gc.get_threshold()  # some releases of Python 3.14 say 0 for the last one
    try:
        yield
    finally:
        if gc.get_threshold() == ours:
            gc.set_threshold(*before)
