"""Tracks of a Perfetto trace and what is on them: slices with arguments and arrows, and counters."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto  # type: ignore[import-untyped, unused-ignore]

from overhead_lens.export.lanes.model import Begin, Counter, Lane, Slice, Value, nest
from overhead_lens.export.perfetto.packets import PacketSequence

_NUMBER = re.compile(r" ?\d+")
_VIOLET = (5747, 16487, 5087, 23527, 15133, 15275, 599, 1204, 315, 597, 133, 421)
SHADES = tuple(f"violet {number}" for number in _VIOLET)
SEEDS = {
    "python": "python 114",
    "guard": "guard 155",
    "dispatcher": "dispatcher 217",
    "allocation": "allocation 74",
    "kernel": "kernel 1743",
    "launch": "launch 1510",
    "wait": "wait 469",
    "compile": "compile 999",
    "unattributed": "unattributed 832",
    "queue": "queue 2543",
    "busy": "busy 211",
    "text": "text 67",
}


def seed(color: str, name: str) -> str:
    """The id of a slice: that of its color, or a shade by its name without numbers.

    A slice's color is a hash of its correlation id where it has one, and of its name otherwise
    (``ui/src/components/colorizer.ts``; versions 52 and 58 alike). These ids hash to the hues that the categories have in other
    pictures, so that a category has one color on every track, whatever stands in a slice's name. Other slices have a shade of
    violet, which no category has: with the color that the UI chooses by name, an operator could look like waiting.
    """
    return SEEDS.get(color, color) or _shade(name)


@lru_cache(maxsize=1 << 12)
def _shade(name: str) -> str:
    return SHADES[zlib.crc32(_NUMBER.sub("", name).encode(errors="replace")) % len(SHADES)]


_BEGIN = proto.TrackEvent.TYPE_SLICE_BEGIN
_END = proto.TrackEvent.TYPE_SLICE_END
_COUNTER = proto.TrackEvent.TYPE_COUNTER


class Tracks:
    """Writes tracks; each is described before its first event.

    Tracks without a parent, and the children of each, are shown in the order in which they were described.
    """

    def __init__(self, packets: PacketSequence) -> None:
        self._packets = packets
        self._numbers = count(1)

    def process(self, number: int, name: str) -> int:
        """A process; its threads and theirs find it by ``number``. Returns the number of its track, as the others do."""
        descriptor = self._describe()
        descriptor.process.pid = number
        descriptor.process.process_name = name
        return int(descriptor.uuid)

    def thread(self, process: int, number: int, name: str) -> int:
        """A thread of process number ``process``."""
        descriptor = self._describe()
        descriptor.thread.pid = process
        descriptor.thread.tid = number
        descriptor.thread.thread_name = name
        return int(descriptor.uuid)

    def lane(self, lane: Lane, parent: int = 0) -> int:
        """The slices of a lane; further rows of it are sibling tracks of its name, which viewers merge.

        Returns:
            The number of its first row, which is there even if no slice is.
        """
        rows = [self._described(lane, parent)]
        for step in nest(lane.slices):
            if step.row == len(rows):
                rows.append(self._described(lane, parent))
            if isinstance(step, Begin):
                self._begin(rows[step.row], step.slice)
            else:
                self._event(_END, rows[step.row], step.end_ns)
        return rows[0]

    def counter(self, counter: Counter, parent: int = 0) -> int:
        """A quantity over time."""
        descriptor = self._describe(counter.name, parent, counter.description)
        descriptor.counter.unit_name = counter.unit
        descriptor.counter.y_axis_share_key = counter.unit
        track = int(descriptor.uuid)
        for time_ns, value in counter.points:
            self._event(_COUNTER, track, time_ns).track_event.double_counter_value = value
        return track

    def _described(self, lane: Lane, parent: int) -> int:
        return int(self._describe(lane.name, parent, lane.description).uuid)

    def _describe(self, name: str = "", parent: int = 0, description: str = "") -> Any:
        number = next(self._numbers)
        descriptor = self._packets.packet().track_descriptor
        descriptor.uuid = number
        descriptor.child_ordering = proto.TrackDescriptor.EXPLICIT
        descriptor.sibling_order_rank = number
        if name:
            descriptor.name = name
        if parent:
            descriptor.parent_uuid = parent
        if description:
            descriptor.description = description
        return descriptor

    def _begin(self, track: int, piece: Slice) -> None:
        packet = self._event(_BEGIN, track, piece.start_ns)
        event = packet.track_event
        event.name_iid = self._packets.name(packet, "event_names", piece.name)
        event.category_iids.append(self._packets.name(packet, "event_categories", piece.category))
        if piece.arguments:
            self._fill_all(packet, event.debug_annotations, piece.arguments)
        event.correlation_id_str_iid = self._packets.string(packet, "correlation_id_str", seed(piece.color, piece.name))
        # The number of an arrow is at two slices only, so that neither end has to be marked as the last: a viewer takes
        # the later one, and an arrow whose ends share an instant is not an error.
        if piece.flows_out or piece.flows_in:
            event.flow_ids.extend((*piece.flows_out, *piece.flows_in))

    def _event(self, kind: int, track: int, time_ns: int) -> Any:
        packet = self._packets.packet(time_ns)
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet

    def _fill_all(self, packet: Any, annotations: Any, arguments: Mapping[str, Value]) -> None:
        for key, value in arguments.items():
            annotation = annotations.add()
            annotation.name_iid = self._packets.name(packet, "debug_annotation_names", key)
            self._fill(packet, annotation, value)

    def _fill(self, packet: Any, annotation: Any, value: Value) -> None:
        match value:
            case bool():
                annotation.bool_value = value
            case int():
                annotation.int_value = value
            case float():
                annotation.double_value = value
            case str():
                annotation.string_value = value
            case list():
                for element in value:
                    self._fill(packet, annotation.array_values.add(), element)
            case dict():
                self._fill_all(packet, annotation.dict_entries, value)
