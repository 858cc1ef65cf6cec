"""What a gate leaves for a CI system: a Markdown summary and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from overhead_lens.compare.instructions import InstructionDelta, signed_count, signed_share
from overhead_lens.compare.limits import BROKEN, CountFinding, Finding
from overhead_lens.compare.model import Delta
from overhead_lens.report.plain import plain
from overhead_lens.units import format_ns, format_signed_ns


def markdown(delta: Delta, findings: Sequence[Finding | CountFinding], *, regressed: bool) -> str:
    """A summary: verdict, limits, categories."""
    base, new = delta.base, delta.new
    ratio = "" if delta.ratio is None else f" ({delta.ratio:.3f}x)"
    lines = [
        f"### {'Regression' if regressed else 'No regression'}: {_cell(f'{new.scenario}:{new.variant}')}",
        "",
        f"{_cell(delta.sentence)}.",
        "",
        f"Wall {format_ns(base.wall.ns)} → {format_ns(new.wall.ns)}{ratio}, verdict **{delta.verdict}**.",
        "",
    ]
    lines += _limits(findings)
    lines += [
        "| category | base | new | difference | 95 % interval | verdict | moved most |",
        "|---|---|---|---|---|---|---|",
    ]
    for old, recent, change in zip(base.host, new.host, delta.host, strict=True):
        if old.ns == recent.ns == 0:
            continue
        moved = f"{format_signed_ns(change.moved[0].delta_ns)} {_cell(change.moved[0].name)}" if change.moved else ""
        lines.append(
            f"| {change.category} | {format_ns(old.ns)} | {format_ns(recent.ns)} | {format_signed_ns(change.delta_ns)} "
            f"| {_interval(change.ci95_ns)} | {change.verdict} | {moved} |"
        )
    if delta.instructions is not None:
        lines += ["", *_counts(delta.instructions)]
    lines += ["", *(f"- {_cell(warning)}" for warning in delta.warnings)]
    return "\n".join(lines).rstrip() + "\n"


def counts_markdown(delta: InstructionDelta, findings: Sequence[CountFinding], name: str, *, regressed: bool) -> str:
    """The same of a gate that only counted instructions; ``name`` is what was counted."""
    headline = f"### {'Regression' if regressed else 'No regression'}: {_cell(name)}"
    return "\n".join([headline, "", *_limits(findings), *_counts(delta)]) + "\n"


def junit(name: str, sentence: str, findings: Sequence[Finding | CountFinding], *, regressed: bool) -> str:
    """JUnit XML: one test case per limit, and one for the verdict where there is no limit.

    Args:
        name: What was measured.
        sentence: What changed.
        findings: The limits.
        regressed: Whether the gate fails.
    """
    name = plain(name)
    cases = [(finding.limit.name, str(finding), finding.state == BROKEN) for finding in findings]
    cases = cases or [("verdict", plain(sentence), regressed)]
    failures = sum(failed for _, _, failed in cases)
    suite = ET.Element("testsuite", name="overhead-lens check", tests=str(len(cases)), failures=str(failures))
    for title, text, failed in cases:
        case = ET.SubElement(suite, "testcase", classname=f"overhead-lens.{name}", name=title)
        if failed:
            ET.SubElement(case, "failure", message=text).text = plain(sentence)
        else:
            ET.SubElement(case, "system-out").text = text
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _limits(findings: Sequence[Finding | CountFinding]) -> list[str]:
    """A table and an empty line; nothing without limits."""
    if not findings:
        return []
    rows = [
        f"| {finding.limit.name} | {finding.allowed} | {finding.delta} "
        f"| {_interval(finding.ci95_ns) if isinstance(finding, Finding) else 'exact'} | {finding.state} |"
        for finding in findings
    ]
    return ["| limit | allowed | measured | 95 % interval | |", "|---|---|---|---|---|", *rows, ""]


def _counts(delta: InstructionDelta) -> list[str]:
    """A sentence and the categories in instructions per call."""
    lines = [f"{_cell(delta.sentence)}.", ""]
    lines += ["| instructions in | base | new | difference | of the base | moved most |", "|---|---|---|---|---|---|"]
    for change in delta.host:
        if change.base_count or change.new_count:
            moved = f"{signed_count(change.moved[0].delta_count)} {_cell(change.moved[0].name)}" if change.moved else ""
            lines.append(
                f"| {change.category} | {change.base_count:,} | {change.new_count:,} | {signed_count(change.delta_count)} "
                f"| {signed_share(change.delta_count, delta.base_count)} | {moved} |"
            )
    return lines


def _cell(text: str) -> str:
    """Text that ends no cell and starts no markup."""
    shown = plain(text)
    for mark in ("\\", "|", "<", "*", "_", "`", "["):
        shown = shown.replace(mark, f"\\{mark}" if mark != "<" else "&lt;")
    return shown


def _interval(interval: tuple[float, float]) -> str:
    return f"{format_signed_ns(interval[0])} .. {format_signed_ns(interval[1])}"
