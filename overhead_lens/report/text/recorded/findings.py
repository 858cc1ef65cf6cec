"""What to try, as a recorded trace says: what it saves at most, where it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import cut, cut_front, section
from overhead_lens.report.text.figures import plain_figures
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.findings.model import Finding
from overhead_lens.units import format_ns

HEADING = "what to try, each saves at most (not to be added up)"
MOST_FINDINGS = 3
_LEAST_SHARE = 0.005
_MOST_NAMES = 3
_MOST_PLACE = 60


class Row(NamedTuple):
    """A finding in words."""

    bound: str
    share: str
    title: str
    evidence: str
    remedy: str


def finding_blocks(findings: Sequence[Finding], window_ns: int, most: int | None) -> Iterator[RenderableType]:
    """What is printed: the first few, or all, each with where it was found and what to try."""
    shown = [each for each in findings if each.bound_ns >= _LEAST_SHARE * window_ns or most is None][:most]
    if not shown:
        return
    table = plain_figures()
    for align in ("right", "right", "left"):
        table.add_column("", justify=align)  # type: ignore[arg-type]
    for row in rows(shown, window_ns, 1):
        said = Text.assemble((row.title, "bold"), (f"\n{row.evidence}\ntry: {row.remedy}", "dim"))
        table.add_row(Text(row.bound), Text(row.share), said)
    yield section(HEADING, table)


def rows(findings: Sequence[Finding], window_ns: int, most_names: int = _MOST_NAMES) -> list[Row]:
    """A row for each."""
    return [
        Row(
            format_ns(each.bound_ns),
            f"{each.bound_ns / window_ns:.1%}" if window_ns else "-",
            each.summary + (f" (device {each.device})" if each.device else ""),
            _evidence(each, most_names),
            each.remedy,
        )
        for each in findings
    ]


def _evidence(finding: Finding, most: int) -> str:
    named = [
        f"{each.count:,}x {cut(plain(kernel_name(each.name)), _MOST_PLACE)} {format_ns(each.ns)}"
        for each in finding.evidence[:most]
    ]
    place = cut_front(plain(finding.line), _MOST_PLACE)
    return "; ".join([", ".join(named), *([f"at {place}"] if place else [])])
