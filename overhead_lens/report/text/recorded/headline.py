"""The headline of recorded traces: the cause, in words."""

from __future__ import annotations

from overhead_lens.report.text.plain import plain
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.units import format_bytes


def headline(analysis: TraceAnalysis) -> str:
    """What dominates, in words."""
    if not analysis.devices:
        if not analysis.host and analysis.memory:
            largest = max(analysis.memory, key=lambda memory: memory.peak_bytes)
            return f"A memory snapshot: most is live on {plain(largest.device)}, {format_bytes(largest.peak_bytes)}."
        if not analysis.host:
            return "The trace holds neither host nor device work."
        first = max(analysis.host, key=lambda category: category.ns)
        return f"No device work; on the busiest thread {first.category} dominates with {first.share:.0%}."
    device = min(analysis.devices, key=lambda device: device.busy_ns / max(1, device.span_ns))
    text = f"Device {device.device} is busy {share_of(device.busy_ns, device.span_ns)} of its span"
    if device.idle_ns:
        blame = sorted(device.idle_blame.items(), key=lambda item: -item[1])
        causes = [f"{name} ({share_of(ns, device.idle_ns)})" for name, ns in blame[:2] if ns]
        text += "; idle is due to " + " and ".join(causes)
    if device.kinds.communication_ns:
        exposed = device.kinds.communication_ns - device.kinds.overlap_ns
        text += f"; communication not overlapped by compute: {share_of(exposed, device.span_ns)}"
    return text + "."


def share_of(ns: float, whole_ns: float) -> str:
    """A share as text."""
    return f"{ns / whole_ns:.1%}" if whole_ns else "-"
