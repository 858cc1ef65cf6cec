"""What to try, as a recorded trace says: what it saves at most, where it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import cut_front, section
from overhead_lens.report.text.figures import plain_figures
from overhead_lens.report.text.plain import plain
from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.traces.findings.sentences import short_name
from overhead_lens.units import format_ns

HEADING = "what to try, each saves at most (not to be added up)"
MOST_FINDINGS = 3
_LEAST_SHARE = 0.005
_MOST_PLACE = 60
_MOST_EVIDENCE = 3


class Row(NamedTuple):
    """A finding in words: a sentence, what it rests on, what its time overlaps with, what to try."""

    title: str
    evidence: str
    overlaps: str
    remedy: str


def finding_blocks(findings: Sequence[Finding], *, whole: bool) -> Iterator[RenderableType]:
    """The printed blocks: the first few findings with what to try; or all, with their evidence."""
    shown = findings if whole else [each for each in findings if each.share >= _LEAST_SHARE][:MOST_FINDINGS]
    if not shown:
        return
    table = plain_figures()
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("")
    for number, row in enumerate(rows(shown), 1):
        grey = [*([row.evidence, row.overlaps] if whole else []), f"try: {row.remedy}"]
        said = Text.assemble((row.title, "bold"), ("".join(f"\n{line}" for line in grey if line), "dim"))
        table.add_row(Text(f"{number}."), said)
    yield section(HEADING, table)


def rows(findings: Sequence[Finding]) -> list[Row]:
    """A row for each finding, with the device's name if there are several."""
    several = len({each.device for each in findings if each.device}) > 1
    return [_row(each, f"device {each.device}: " if several and each.device else "") for each in findings]


def _row(finding: Finding, device: str) -> Row:
    said = plain(f"{device}{finding.sentence}")
    overlaps = f"its time overlaps with {', '.join(finding.overlaps)}" if finding.overlaps else ""
    return Row(
        f"{said[:1].upper()}{said[1:]}.",
        "; ".join(map(_evidence, finding.evidence[:_MOST_EVIDENCE])),
        overlaps,
        finding.remedy,
    )


def _evidence(evidence: Evidence) -> str:
    at = " in ".join(part for part in (cut_front(plain(evidence.line), _MOST_PLACE), plain(evidence.module)) if part)
    return f"{evidence.count:,}x {plain(short_name(evidence.name))} {format_ns(evidence.ns)}" + (
        f" at {at}" if at else ""
    )
