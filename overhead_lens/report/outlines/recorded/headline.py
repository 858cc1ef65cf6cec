"""The headline of a recorded trace: the cause, in words, and what would tell more."""

from __future__ import annotations

from overhead_lens.report.text.blocks import capitalized
from overhead_lens.traces.budgets import DeviceBudget
from overhead_lens.traces.findings.model import CAUSE_SHARE, Finding
from overhead_lens.traces.health import WITH_STACKS
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.units import format_bytes

_IDLES = 0.1
NO_CAUSE = "No single cause"


def headline(analysis: TraceAnalysis) -> str:
    """The cause in a trace, as far as known, and how to record more."""
    return " ".join([_cause(analysis), *_hints(analysis)])


def _cause(analysis: TraceAnalysis) -> str:
    if not analysis.host and not analysis.devices:
        if analysis.memory:
            largest = max(analysis.memory, key=lambda memory: memory.peak_bytes)
            return f"Only memory was recorded: most is live on {largest.device}, {format_bytes(largest.peak_bytes)}."
        return "The trace holds neither host nor device work."
    first = analysis.findings[0] if analysis.findings else None
    if first is None:
        return f"{NO_CAUSE}: {_state(analysis)}."
    sentence = first.sentence
    if first.share < CAUSE_SHARE:
        return f"{NO_CAUSE}: {_state(analysis)}; at most {first.share:.0%} is one thing: {sentence}."
    return f"{capitalized(_idling(analysis, first) + sentence)}."


def _idling(analysis: TraceAnalysis, first: Finding) -> str:
    """The idle time of the cause's device, else of the idlest, as the introduction of a cause on the host.

    It is of the window, as the cause's own share is.
    """
    own = (device for device in analysis.devices if device.device == first.device)
    device = next(own, _idlest(analysis))
    if device is None or first.category in ("compute", "communication", "copy"):
        return ""
    idle = 1 - device.busy_ns / max(1, analysis.window.wall_ns)
    return f"{_named(analysis, device)} idles {idle:.0%} of the window: " if idle >= _IDLES else ""


def _state(analysis: TraceAnalysis) -> str:
    """The largest share of the time, if there is no cause."""
    device = _idlest(analysis)
    if device is None:
        most = max(analysis.host, key=lambda category: category.ns)
        if most.category == "unattributed":
            return f"no device work, and {most.share:.0%} of the busiest thread is unattributed"
        return f"no device work, and the busiest thread spends {most.share:.0%} in {most.category}"
    kinds, wall_ns = device.kinds, max(1, analysis.window.wall_ns)
    parts = [("computes", kinds.compute_ns), ("only communicates", kinds.communication_ns - kinds.overlap_ns)]
    shares = [f"{what} {ns / wall_ns:.0%}" for what, ns in parts if ns]
    idles = f"idles {1 - device.busy_ns / wall_ns:.0%} of the window"
    return f"{_named(analysis, device)} " + ", ".join([*shares, idles])


def _idlest(analysis: TraceAnalysis) -> DeviceBudget | None:
    return min(analysis.devices, key=lambda device: device.busy_ns, default=None)


def _named(analysis: TraceAnalysis, device: DeviceBudget) -> str:
    return "the device" if len(analysis.devices) == 1 else f"device {device.device}"


def _hints(analysis: TraceAnalysis) -> list[str]:
    """The most important missing option of the recording, as a hint."""
    first = analysis.findings[0] if analysis.findings else None
    if not analysis.host:
        return ["Record with activities=[CPU, CUDA] to see what the host does."] if analysis.devices else []
    if "truncated" in analysis.issues:
        return ["The file is cut off: the cause may lie in the missing part, often the device's work."]
    if (analysis.world_size or 1) > 1 and first is not None and first.id == "exposed_communication":
        return [f"Analyze the traces of all {analysis.world_size} ranks together to see whether one comes late."]
    of_host = first is not None and first.category not in ("compute", "communication", "copy")
    if first is not None and of_host and not first.line and WITH_STACKS not in analysis.notes:
        return ["Record with with_stack=True to see which line."]
    return []
