"""What is the cause and what to try, as recorded traces say: the headline, and a card for each finding."""

from __future__ import annotations

from collections.abc import Sequence

from overhead_lens.report.outline import Card, Section
from overhead_lens.report.text.blocks import capitalized, cut_front
from overhead_lens.taxonomy.categories import QUEUE
from overhead_lens.traces.budgets import DeviceBudget
from overhead_lens.traces.findings.model import CAUSE_SHARE, Evidence, Finding
from overhead_lens.traces.findings.sentences import short_name
from overhead_lens.traces.health import WITH_STACKS
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.units import format_bytes, format_ns

NO_CAUSE = "No single cause"
_FOREIGN = {"begin_end_event": "begin and end apart", "no_category": "have no category"}
_MOST = 3
_LEAST_SHARE, _IDLES = 0.005, 0.1
_MOST_PLACE = 60
_MOST_EVIDENCE = 3


def finding_sections(findings: Sequence[Finding]) -> list[Section]:
    """The first few that save something; the others stand on pages only."""
    several = len({each.device for each in findings if each.device}) > 1
    cards = [_card(each, f"device {each.device}: " if several and each.device else "") for each in findings]
    count = sum(each.share >= _LEAST_SHARE for each in findings[:_MOST])
    rest = cards[count:]
    heading = f"{len(rest)} more that save less" if count else "What to try, though it saves little"
    first = Section("What to try, each saves at most (not to be added up)", cards[:count], reach="everywhere")
    return [*([first] if count else []), *([Section.folded(heading, *rest)] if rest else [])]


def _card(finding: Finding, device: str) -> Card:
    title = f"{device}{finding.sentence}"
    overlaps = f"its time overlaps with {', '.join(finding.overlaps)}" if finding.overlaps else ""
    evidence = map(_evidence, finding.evidence[:_MOST_EVIDENCE])
    return Card(f"{capitalized(title)}.", [*evidence, overlaps], finding.remedy)


def _evidence(evidence: Evidence) -> str:
    at = " in ".join(part for part in (cut_front(evidence.line, _MOST_PLACE), evidence.module) if part)
    return f"{evidence.count:,}x {short_name(evidence.name)} {format_ns(evidence.ns)}" + (f" at {at}" if at else "")


def headline(analysis: TraceAnalysis, ranks: int = 1) -> str:
    """The cause in a trace, as far as known, and how to record more; ``ranks`` of its job are analyzed together."""
    return _foreign(analysis) or " ".join([_cause(analysis), *_hints(analysis, ranks)])


def _foreign(analysis: TraceAnalysis) -> str:
    """What shows that another profiler wrote a trace without operators and devices; empty if nothing does."""
    shown = [text for reason, text in _FOREIGN.items() if reason in analysis.issues]
    if not shown or analysis.operators or analysis.devices:
        return ""
    why = f"its events {' and '.join(shown)}, so most of it cannot be analyzed"
    return f"torch.profiler's own export did not write this trace: {why}."


def _cause(analysis: TraceAnalysis) -> str:
    if not analysis.host and not analysis.devices:
        if analysis.memory:
            largest = max(analysis.memory, key=lambda memory: memory.peak_bytes)
            return f"Only memory was recorded: most is live on {largest.device}, {format_bytes(largest.peak_bytes)}."
        if analysis.issues.keys() - {"truncated"}:
            return "Nothing in the trace can be analyzed: its events were left out."
        return "The trace holds neither host nor device work."
    first = analysis.findings[0] if analysis.findings else None
    if first is None:
        return f"{NO_CAUSE}: {_state(analysis)}."
    sentence = first.sentence
    if first.share < CAUSE_SHARE:
        return f"{NO_CAUSE}: {_state(analysis)}; the largest known cause: {sentence}."
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
    """The sentence that names the largest share of the time, for a trace without a cause."""
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


def _hints(analysis: TraceAnalysis, ranks: int) -> list[str]:
    """The most important missing option of the recording, as a hint."""
    first = analysis.findings[0] if analysis.findings else None
    if not analysis.host:
        return ["Record with activities=[CPU, CUDA] to see what the host does."] if analysis.devices else []
    if "truncated" in analysis.issues:
        return ["The file is cut off: the cause may lie in the missing part, often the device's work."]
    if (analysis.world_size or 1) > ranks and first is not None and first.id == "exposed_communication":
        return [f"Analyze the traces of all {analysis.world_size} ranks together to see whether one comes late."]
    of_host = first is not None and first.category not in ("compute", "communication", "copy", QUEUE)
    if first is not None and of_host and not first.line and WITH_STACKS not in analysis.notes:
        return ["Record with with_stack=True to see which line."]
    return []
