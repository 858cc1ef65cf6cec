"""What to try, on the page of a recorded trace: a card for each finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.model import Card, Section
from overhead_lens.report.text.recorded import findings as told
from overhead_lens.traces.findings.model import Finding

_MOST = 30


def finding_sections(findings: Sequence[Finding]) -> Iterator[Section]:
    """One section, the first few cards open; none where nothing was found."""
    if findings:
        cards = [
            Card(row.title, [row.evidence, row.overlaps], row.remedy, at < told.MOST_FINDINGS)
            for at, row in enumerate(told.rows(findings[:_MOST]))
        ]
        yield Section(told.HEADING.capitalize(), cards)
