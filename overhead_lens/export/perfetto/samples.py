"""Sampled stacks as Perfetto's ``PerfSample``, which viewers draw as a flamegraph (UI version 52 and later)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto  # type: ignore[import-untyped, unused-ignore]

from overhead_lens.export.perfetto.packets import PacketSequence
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.units import NS_PER_S

TIMEBASE = "sampled stacks"
PYTHON_MAPPING = "python"

_USER_MODE = proto.Profiling.MODE_USER
_NO_FRAMES = (StackFrame("[no frames]", "", 0, native=True),)


def write_samples(packets: PacketSequence, stacks: Sequence[Stack], period_ns: int, process: int, thread: int) -> None:
    """Write a stack as often as it was seen, one sample every ``period_ns`` from zero on.

    A stack's count says nothing of when it was seen: samples of one stack stand together.

    Args:
        packets: A sequence of their own; its first packet sets the time base of the rest.
        process, thread: Numbers of what they are shown under.
    """
    timebase = packets.first.trace_packet_defaults.perf_sample_defaults.timebase
    timebase.counter = proto.PerfEvents.SW_CPU_CLOCK
    timebase.frequency = max(1, round(NS_PER_S / period_ns))
    timebase.name = TIMEBASE
    time_ns = 0
    for stack in stacks:
        for _ in range(stack.count):
            packet = packets.packet(time_ns)
            sample = packet.perf_sample
            sample.pid, sample.tid = process, thread
            sample.cpu = 0
            sample.cpu_mode = _USER_MODE
            sample.callstack_iid = _callstack(packets, packet, stack)
            time_ns += period_ns


def _callstack(packets: PacketSequence, packet: Any, stack: Stack) -> int:
    number, entry = packets.entry(packet, "callstacks", stack.frames)
    if entry is not None:
        entry.frame_ids.extend(_frame(packets, packet, frame) for frame in stack.frames or _NO_FRAMES)
    return number


def _frame(packets: PacketSequence, packet: Any, frame: StackFrame) -> int:
    number, entry = packets.entry(packet, "frames", frame)
    if entry is not None:
        entry.function_name_id = packets.string(packet, "function_names", frame.function or "[unresolved]")
        entry.mapping_id = _mapping(packets, packet, frame.location if frame.native else PYTHON_MAPPING)
        # Readers tell frames apart by function, mapping and this, not by line.
        entry.rel_pc = frame.line
        if frame.line:
            entry.source_path_iid = packets.string(packet, "source_paths", frame.location)
            entry.line_number = frame.line
    return number


def _mapping(packets: PacketSequence, packet: Any, name: str) -> int:
    number, entry = packets.entry(packet, "mappings", name)
    if entry is not None:
        entry.path_string_ids.append(packets.string(packet, "mapping_paths", name))
    return number
