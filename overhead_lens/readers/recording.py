"""Reads what ``analyze`` is given: a trace of torch.profiler, or a memory snapshot of the caching allocator."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from overhead_lens.readers.kineto.columns import Contents
from overhead_lens.readers.kineto.contents import compiles_scanner, read_contents

if TYPE_CHECKING:
    from overhead_lens.readers.kineto.model import Trace

_PICKLE_PROTOCOLS = range(2, 6)

Reading = Callable[[], "Trace"]
"""Gives what was read, once; raises what ``read_recording`` raises."""


def read_recording(path: Path) -> Trace:
    """Read a trace or a memory snapshot, recognized by its first bytes.

    Raises:
        UsageError: The file cannot be read or is neither.
    """
    if not _is_snapshot(path):
        return _framed(lambda: read_contents(path))
    from overhead_lens.readers.snapshot import read_snapshot

    return read_snapshot(path)


def begin_reading(path: Path) -> Reading:
    """Begin to read a trace in another thread, while this thread imports the analysis."""
    if _is_snapshot(path):
        return lambda: read_recording(path)
    pool = ThreadPoolExecutor(1)
    contents = pool.submit(read_contents, path)
    pool.shutdown(wait=False)
    return lambda: _framed(contents.result)


def compiles_first(path: Path) -> bool:
    """Whether reading a file begins with compiling the scanner, once per machine."""
    return not _is_snapshot(path) and compiles_scanner(path)


def _framed(contents: Callable[[], Contents]) -> Trace:
    from overhead_lens.readers.kineto.read import trace_of

    return trace_of(contents())


def _is_snapshot(path: Path) -> bool:
    """Whether the file begins like a pickle; False for one that cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(2)
    except OSError:
        return False
    return len(head) == 2 and head[0] == 0x80 and head[1] in _PICKLE_PROTOCOLS  # gzip and JSON begin otherwise
