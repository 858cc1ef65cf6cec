"""Reads what ``analyze`` is given: a trace of torch.profiler, or a memory snapshot of the caching allocator."""

from __future__ import annotations

from pathlib import Path

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.readers.snapshot.format import is_snapshot


def read_recording(path: Path) -> Trace:
    """Read a file of either kind, told apart by how it begins.

    Raises:
        UsageError: The file cannot be read or is neither.
    """
    if not is_snapshot(path):
        return read_trace(path)
    # Loading the compiled machine takes half a second.
    from overhead_lens.readers.snapshot.read import read_snapshot

    return read_snapshot(path)
