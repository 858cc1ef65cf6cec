"""What could be spared by a recorded trace, in the terminal: at most so much, by what, where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from overhead_lens.report.text.blocks import Cells, cut, cut_front, section
from overhead_lens.report.text.figures import plain_figures
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.names import kernel_name
from overhead_lens.traces.findings.model import Finding
from overhead_lens.units import format_ns

_TOP = 4
_LEAST_SHARE = 0.005
_MOST_NAMES = 3
_MOST_PLACE = 60


def finding_blocks(findings: Sequence[Finding], window_ns: int) -> Iterator[RenderableType]:
    """What is printed: the first few, each with what to try and where."""
    shown = [each for each in findings if each.bound_ns >= _LEAST_SHARE * window_ns][:_TOP]
    if not shown:
        return
    table = plain_figures()
    for name, align in (("", "right"), ("", "right"), ("", "left")):
        table.add_column(name, justify=align)  # type: ignore[arg-type]
    for each, (bound, share, name, *_) in zip(shown, cells(shown, window_ns)[1], strict=True):
        first = _evidence(each, 1)
        said = Text.assemble(name, f": {each.summary}", (f"\n{first}\ntry: {each.remedy}", "dim"))
        table.add_row(Text(bound), Text(share), said)
    yield section("what could be spared, each at most (not to be added up)", table)


def cells(findings: Sequence[Finding], window_ns: int) -> Cells:
    """A row for each."""
    heads = ("at most", "of the window", "finding", "evidence", "found", "what to try")
    return heads, [
        (
            format_ns(each.bound_ns),
            f"{each.bound_ns / window_ns:.1%}" if window_ns else "-",
            each.id + (f" (device {each.device})" if each.device else ""),
            _evidence(each, _MOST_NAMES),
            each.summary,
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
