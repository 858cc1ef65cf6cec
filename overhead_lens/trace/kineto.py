"""Reader of what torch.profiler exports (Kineto's Chrome trace JSON), plain or gzipped, sound or damaged.

The subset that is read:

- the document: an object with ``traceEvents``, or a bare list of events; what stands beside the events is kept as
  metadata (``deviceProperties``, ``distributedInfo``, ``baseTimeNanoseconds``, ``with_stack``, ...);
- complete events (``ph`` = ``X``): ``name``, ``cat``, ``pid``, ``tid``, ``ts`` and ``dur`` (decimal microseconds, read as
  text into int64 ns), and of ``args`` ``correlation``, ``Sequence number``, ``device`` and ``stream``; the other
  arguments are left as text and decoded on demand;
- of the metadata events (``M``) the names of threads. Flow events (``s``, ``f``) repeat what ``correlation`` and
  ``Sequence number`` say; they and instants (``i``) are counted and not kept.

What each value may look like, and what is dropped or repaired under which reason, is defined in ``event.py``. A sound
file that is small is decoded as a whole (``document.py``); a large or damaged one is scanned as it is decompressed
(``stream.py``), so that every sound event of a damaged file is read and the rest is counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd

from overhead_lens.errors import UsageError
from overhead_lens.trace.columns import Framed, Ints, framed
from overhead_lens.trace.document import Document, decode
from overhead_lens.trace.model import Trace
from overhead_lens.trace.source import Source, opened

if TYPE_CHECKING:
    from overhead_lens.trace.stream import Streamed

SMALL_BYTES = 32 << 20
"""Up to here decoding as a whole takes less time than loading the compiled scanner saves."""

_BLOCK_BYTES = 2 << 20


def read_events(path: Path) -> pd.DataFrame:
    """The event frame of a trace file.

    Raises:
        UsageError: The file cannot be read or is not such a trace.
    """
    return read_trace(path).events


def read_trace(path: Path) -> Trace:
    """A trace file.

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
        # Loading the compiled scanner takes half a second: only where it is needed.
        from overhead_lens.trace.stream import arguments_reader, scan

        streamed = scan(source, head, path)
    result = framed(streamed.columns)
    arguments = arguments_reader(path, streamed, result.rows)
    return _trace(path, result, streamed, streamed.raw_bytes, arguments)


def _head(source: Source) -> tuple[list[Ints], int]:
    """The first ``SMALL_BYTES`` of a stream in blocks, and how much that is."""
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
        event_count=read.event_count,
        raw_bytes=raw_bytes,
        origin_ns=result.earliest_ns + _base_ns(read.metadata),
        issues=read.issues,
        thread_names=result.thread_names,
        metadata=read.metadata,
        arguments=arguments,
    )


def _base_ns(metadata: Mapping[str, Any]) -> int:
    base_ns = metadata.get("baseTimeNanoseconds")
    return base_ns if isinstance(base_ns, int) and not isinstance(base_ns, bool) else 0


def _decoder(texts: Sequence[msgspec.Raw], rows: Ints) -> Callable[[Sequence[int]], list[Mapping[str, Any]]]:
    def arguments(wanted: Sequence[int]) -> list[Mapping[str, Any]]:
        return [_arguments(bytes(texts[rows[row]])) for row in wanted]

    return arguments


def _arguments(text: bytes) -> Mapping[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {}
