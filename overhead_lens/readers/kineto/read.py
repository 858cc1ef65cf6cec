"""Reads traces exported by torch.profiler: Kineto's Chrome trace JSON, gzipped or not, sound or damaged.

The subset that is read:

- the document: an object with ``traceEvents``, or a bare list of events; all other values are kept as metadata
  (``deviceProperties``, ``distributedInfo``, ``baseTimeNanoseconds``, ``with_stack``, ...);
- complete events (``ph`` = ``X``): ``name``, ``cat``, ``pid``, ``tid``, ``ts`` and ``dur`` (decimal microseconds, converted from
  text to int64 ns), and of ``args`` ``correlation``, ``Sequence number``, ``device``, ``stream`` and ``External id``; the other
  arguments are decoded on demand;
- of device work as well its size, its node of a graph and its occupancy (``work.py``);
- instants (``i``) named ``[memory]``: allocations and releases;
- counters (``C``): every series of their arguments;
- metadata events (``M``): thread names. Flow events (``s``, ``f``) repeat ``correlation`` and ``Sequence number``; they and
  other instants are counted, not kept.

``event.py`` defines which values are valid and what is dropped or repaired; ``contents.py`` reads them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from overhead_lens.readers.kineto.columns import Contents
from overhead_lens.readers.kineto.contents import read_contents
from overhead_lens.readers.kineto.frame import framed
from overhead_lens.readers.kineto.model import Trace


def read_trace(path: Path) -> Trace:
    """Read a trace file.

    Raises:
        UsageError: The file cannot be read or is not such a trace.
    """
    return trace_of(read_contents(path))


def trace_of(contents: Contents) -> Trace:
    """The trace that was read; empties the columns.

    Raises:
        UsageError: Its times span more than int64 nanoseconds.
    """
    result = framed(contents.columns)
    issues = Counter(contents.issues) + Counter(result.dropped)
    return Trace(
        path=str(contents.path),
        columns=result.events,
        memory=result.memory,
        counters=result.counters,
        work=result.work,
        event_count=contents.event_count,
        raw_bytes=contents.raw_bytes,
        issues=dict(issues),
        thread_names=result.thread_names,
        metadata=contents.metadata,
        arguments=contents.arguments(result.rows),
    )
