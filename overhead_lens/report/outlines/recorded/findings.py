"""What to try, as recorded traces say: a card for each finding."""

from __future__ import annotations

from collections.abc import Sequence

from overhead_lens.report.outline import Card, Section
from overhead_lens.report.text.blocks import capitalized, cut_front
from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.traces.findings.sentences import short_name
from overhead_lens.units import format_ns

_MOST = 3
_LEAST_SHARE = 0.005
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
    evidence = "; ".join(map(_evidence, finding.evidence[:_MOST_EVIDENCE]))
    return Card(f"{capitalized(title)}.", [evidence, overlaps], finding.remedy)


def _evidence(evidence: Evidence) -> str:
    at = " in ".join(part for part in (cut_front(evidence.line, _MOST_PLACE), evidence.module) if part)
    return f"{evidence.count:,}x {short_name(evidence.name)} {format_ns(evidence.ns)}" + (f" at {at}" if at else "")
