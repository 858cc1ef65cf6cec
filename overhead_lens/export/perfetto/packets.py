"""Packets of Perfetto's trace format, written as they are made.

Format: https://perfetto.dev/docs/reference/trace-packet-proto. A trace is a sequence of ``TracePacket``; writing them in
batches keeps memory constant, for the official builders hold a trace whole or cost twice the time. Strings are interned:
a packet that uses one for the first time carries it, and later ones carry its number only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any, BinaryIO

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto  # type: ignore[import-untyped, unused-ignore]

from overhead_lens.export.names import readable

_BATCH_PACKETS = 2048


class PacketSink:
    """Writes packets to a file, in the order in which they were added."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._trace = proto.Trace()

    def add(self) -> Any:
        """A new packet; fill it before the next one is added."""
        if len(self._trace.packet) >= _BATCH_PACKETS:
            self.flush()
        return self._trace.packet.add()

    def flush(self) -> None:
        """Write what was added; a trace file is a plain concatenation of serialized ``Trace`` messages."""
        self._file.write(self._trace.SerializeToString())
        self._trace = proto.Trace()


class PacketSequence:
    """Packets that share one table of interned strings."""

    def __init__(self, sink: PacketSink, number: int) -> None:
        self._sink = sink
        self._number = number
        self._interned: defaultdict[str, dict[Hashable, int]] = defaultdict(dict)
        first = self.packet()
        # Readers drop every event of a sequence until they see that its tables start empty.
        first.sequence_flags |= proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        first.first_packet_on_sequence = True
        self.first = first

    def packet(self, timestamp_ns: int | None = None) -> Any:
        """A new packet of this sequence, at ``timestamp_ns`` since the zero of the timeline."""
        packet = self._sink.add()
        packet.trusted_packet_sequence_id = self._number
        packet.sequence_flags = proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        if timestamp_ns is not None:
            packet.timestamp = timestamp_ns
        return packet

    def name(self, packet: Any, table: str, text: str) -> int:
        """The number of ``text`` in an interning table whose entries have a ``name``."""
        number, entry = self.entry(packet, table, text)
        if entry is not None:
            entry.name = readable(text)
        return number

    def string(self, packet: Any, table: str, text: str) -> int:
        """The number of ``text`` in an interning table whose entries have a ``str`` of bytes."""
        number, entry = self.entry(packet, table, text)
        if entry is not None:
            entry.str = readable(text).encode()
        return number

    def entry(self, packet: Any, table: str, key: Hashable) -> tuple[int, Any]:
        """The number of ``key`` in an interning table; a new one gets an entry in ``packet``, to be filled."""
        known = self._interned[table]
        number = known.get(key)
        if number is not None:
            return number, None
        number = known[key] = len(known) + 1
        entry = getattr(packet.interned_data, table).add()
        entry.iid = number
        return number, entry
