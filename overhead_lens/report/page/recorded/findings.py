"""What could be spared by a recorded trace, on its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.model import Section, Table, Text
from overhead_lens.report.text.recorded import findings as told
from overhead_lens.traces.findings.model import Finding

_MOST = 30


def finding_sections(findings: Sequence[Finding], window_ns: int) -> Iterator[Section]:
    """One section; none where nothing was found."""
    if findings:
        heads, rows = told.cells(findings[:_MOST], window_ns)
        explained = "Each is an upper bound by itself. They overlap, so that they are not to be added up."
        yield Section("What could be spared, at most", [Text([explained]), Table(heads, rows, frozenset({0, 1}))])
