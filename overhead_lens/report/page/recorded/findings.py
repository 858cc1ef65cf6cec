"""What to try, on the page of a recorded trace: a card for each finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.model import Card, Section
from overhead_lens.report.text.recorded import findings as told
from overhead_lens.traces.findings.model import Finding

_MOST = 30
_OPEN = 3


def finding_sections(findings: Sequence[Finding], window_ns: int) -> Iterator[Section]:
    """One section; none where nothing was found."""
    if findings:
        cards = [
            Card(f"{row.bound} ({row.share})", row.title, [row.evidence], row.remedy, at < _OPEN)
            for at, row in enumerate(told.rows(findings[:_MOST], window_ns))
        ]
        yield Section(told.HEADING.capitalize(), cards)
