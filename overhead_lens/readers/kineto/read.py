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

``event.py`` defines which values are valid and what is dropped or repaired. A small, sound file is decoded as a whole
(``document.py``). A large or damaged one is scanned while it is decompressed (``stream.py``): every sound event is read, the rest
is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from overhead_lens.errors import UsageError
from overhead_lens.readers.kineto.columns import Framed, Ints, framed
from overhead_lens.readers.kineto.document import Document, decode
from overhead_lens.readers.kineto.event import DAMAGED, arguments_of
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.readers.kineto.source import Source, opened

if TYPE_CHECKING:
    from overhead_lens.readers.kineto.stream import Streamed

SMALL_BYTES = 32 << 20
"""Up to this size, decoding as a whole is faster than loading and running the compiled scanner."""

_BLOCK_BYTES = 2 << 20


def read_events(path: Path) -> pd.DataFrame:
    """Read the event frame of a trace file.

    Raises:
        UsageError: The file cannot be read or is not such a trace.
    """
    return read_trace(path).events


def read_trace(path: Path) -> Trace:
    """Read a trace file.

    Raises:
        UsageError: The file cannot be read or is not such a trace.
    """
    with opened(path) as source:
        head, size = _head(source)
        if size == 0:
            raise UsageError(f"{path} is empty" if not source.broken else f"{path} is no gzip file that can be read")
        document = (
            decode(memoryview(b"".join(block.data for block in head)))
            if size < SMALL_BYTES and not source.broken
            else None
        )
        if document is not None:
            return _decoded(path, document, size)
        # Loading the compiled scanner takes half a second.
        from overhead_lens.readers.kineto.stream import arguments_reader, scan

        streamed = scan(source, head, path)
    result = framed(streamed.columns)
    arguments = arguments_reader(path, streamed, result.rows)
    return _trace(path, result, streamed, streamed.raw_bytes, arguments)


def _head(source: Source) -> tuple[list[Ints], int]:
    """Read the first ``SMALL_BYTES`` of a stream: blocks, and their total size."""
    blocks: list[Ints] = []
    size = 0
    while size < SMALL_BYTES:
        block = np.empty(min(_BLOCK_BYTES, SMALL_BYTES - size), dtype=np.uint8)
        count = source.fill(memoryview(block.data))
        blocks.append(block[:count])
        size += count
        if count < len(block):
            break
    return blocks, size


def _decoded(path: Path, document: Document, raw_bytes: int) -> Trace:
    result = framed(document.columns)
    return _trace(path, result, document, raw_bytes, _decoder(document.arguments, result.rows))


def _trace(
    path: Path,
    result: Framed,
    read: Document | Streamed,
    raw_bytes: int,
    arguments: Callable[[Sequence[int]], list[Mapping[str, Any]]],
) -> Trace:
    return Trace(
        path=str(path),
        events=result.events,
        memory=result.memory,
        counters=result.counters,
        work=result.work,
        event_count=read.event_count,
        raw_bytes=raw_bytes,
        origin_ns=result.earliest_ns + _base_ns(read.metadata),
        issues=_issues(read, result),
        thread_names=result.thread_names,
        metadata=read.metadata,
        arguments=arguments,
    )


def _issues(read: Document | Streamed, result: Framed) -> Mapping[str, int]:
    damaged_count = read.issues.get(DAMAGED, 0) + result.damaged_count
    return {**read.issues, DAMAGED: damaged_count} if damaged_count else read.issues


def _base_ns(metadata: Mapping[str, Any]) -> int:
    base_ns = metadata.get("baseTimeNanoseconds")
    return base_ns if isinstance(base_ns, int) and not isinstance(base_ns, bool) else 0


def _decoder(texts: Sequence[msgspec.Raw], rows: Ints) -> Callable[[Sequence[int]], list[Mapping[str, Any]]]:
    def arguments(wanted: Sequence[int]) -> list[Mapping[str, Any]]:
        return [_arguments(bytes(texts[rows[row]])) for row in wanted]

    return arguments


def _arguments(text: bytes) -> Mapping[str, Any]:
    try:
        value = arguments_of(text) if text else {}
    except RecursionError:
        value = {}
    return value if isinstance(value, dict) else {}
