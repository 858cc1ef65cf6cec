"""What to try, on the page of a recorded trace: a card for each finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.model import Card, Section
from overhead_lens.report.text.recorded import findings as told
from overhead_lens.traces.findings.model import Finding

_MOST = 30


def finding_sections(findings: Sequence[Finding]) -> Iterator[Section]:
    """The first few as open cards, the others in a folded section; none if nothing was found."""
    cards = [Card(row.title, [row.evidence, row.overlaps], row.remedy) for row in told.rows(findings[:_MOST])]
    first, others = cards[: told.MOST_FINDINGS], cards[told.MOST_FINDINGS :]
    if first:
        yield Section(told.HEADING.capitalize(), first)
    if others:
        yield Section(f"{len(others)} more that save less", others, is_open=False)
