"""Sampled stacks as Perfetto's ``PerfSample``, which viewers draw as a flamegraph (UI version 52 and later)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto  # type: ignore[import-untyped, unused-ignore]

from overhead_lens.export.lanes.model import ThreadKey
from overhead_lens.export.lanes.threads import Placed
from overhead_lens.export.perfetto.packets import PacketSequence
from overhead_lens.stack import StackFrame
from overhead_lens.taxonomy.names import short_symbol


@dataclass(frozen=True, slots=True)
class Flamegraph:
    """Stacks of a thread, and what it and its process are called."""

    thread: ThreadKey
    thread_name: str
    process_name: str
    samples: Iterable[Placed]


def flamegraphs(
    main: ThreadKey,
    command: str,
    stacks: Mapping[ThreadKey, Sequence[Placed]],
    names: Mapping[ThreadKey, str],
    end_ns: int,
) -> list[Flamegraph]:
    """Flamegraphs of threads, so that the UI opens that of ``main``, the thread that the budget is of.

    The UI opens that of the process whose stack is the latest, all its threads together: waiting ones would hide what the main
    thread does. So every thread stands as a process of its own, and the main thread's last stack is at the end.
    """
    drawn = []
    for thread, placed in stacks.items():
        pid, tid = thread
        name = names.get(thread, "thread")
        if thread != main:
            drawn.append(Flamegraph((tid, tid), name, f"{name} of process {pid}", placed))
        elif placed:
            last = placed[-1]._replace(time_ns=end_ns)
            drawn.append(Flamegraph((tid, tid), name, command, [*placed[:-1], last]))
    return drawn


def write_samples(packets: PacketSequence, samples: Iterable[Placed], process: int, thread: int) -> None:
    """Write stacks, the category of each as its outermost frame.

    Args:
        packets: A sequence of their own; its first packet sets the time base of the rest.
        samples: In any order.
        process, thread: Numbers of what they are shown under.
    """
    timebase = packets.first.trace_packet_defaults.perf_sample_defaults.timebase
    # The counter must be named; its frequency is nobody's: the places of samples are ours.
    timebase.counter = proto.PerfEvents.SW_CPU_CLOCK
    timebase.name = "sampled stacks"
    for placed in samples:
        packet = packets.packet(placed.time_ns)
        sample = packet.perf_sample
        sample.pid, sample.tid = process, thread
        sample.cpu = 0
        sample.cpu_mode = proto.Profiling.MODE_USER
        sample.callstack_iid = _callstack(packets, packet, placed)


def _callstack(packets: PacketSequence, packet: Any, placed: Placed) -> int:
    frames = (StackFrame(placed.category, "host category", 0, native=True), *placed.stack.frames)
    number, entry = packets.entry(packet, "callstacks", frames)
    if entry is not None:
        entry.frame_ids.extend(_frame(packets, packet, frame) for frame in frames)
    return number


def _frame(packets: PacketSequence, packet: Any, frame: StackFrame) -> int:
    number, entry = packets.entry(packet, "frames", frame)
    if entry is not None:
        name = short_symbol(frame.function) if frame.native else frame.function
        entry.function_name_id = packets.string(packet, "function_names", name or "[unresolved]")
        entry.mapping_id = _mapping(packets, packet, frame.location if frame.native else "python")
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
