"""What a gate leaves for a CI system: a Markdown summary and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from overhead_lens.comparison.instructions import InstructionDelta, signed_count, signed_share
from overhead_lens.comparison.model import Delta
from overhead_lens.report.text.blocks import signed_interval_text
from overhead_lens.report.text.plain import plain
from overhead_lens.studies.check.limits import BROKEN, CountFinding, LimitFinding
from overhead_lens.studies.check.outcome import Outcome, TimeOutcome
from overhead_lens.units import format_ns, format_signed_ns


def markdown(outcome: Outcome) -> str:
    """A summary: verdict, limits, categories."""
    if isinstance(outcome, TimeOutcome):
        return _of_times(outcome.delta, outcome)
    return "\n".join([_headline(outcome), "", *_limits(outcome.findings), *_counts(outcome.delta)]) + "\n"


def _headline(outcome: Outcome) -> str:
    return f"### {'Regression' if outcome.regressed else 'No regression'}: {_cell(outcome.name)}"


def _of_times(delta: Delta, outcome: Outcome) -> str:
    base, new = delta.base, delta.new
    ratio = "" if delta.ratio is None else f" ({delta.ratio:.3f}x)"
    lines = [
        _headline(outcome),
        "",
        f"{_cell(delta.sentence)}.",
        "",
        f"Wall {format_ns(base.wall.ns)} → {format_ns(new.wall.ns)}{ratio}, verdict **{delta.verdict}**.",
        "",
    ]
    lines += _limits(outcome.findings)
    lines += [
        "| category | base | new | difference | 95 % interval | verdict | moved most |",
        "|---|---|---|---|---|---|---|",
    ]
    for old, recent, change in zip(base.host, new.host, delta.host, strict=True):
        if old.ns == recent.ns == 0:
            continue
        moved = (
            f"{format_signed_ns(change.contributors[0].delta_ns)} {_cell(change.contributors[0].name)}"
            if change.contributors
            else ""
        )
        lines.append(
            f"| {change.category} | {format_ns(old.ns)} | {format_ns(recent.ns)} | {format_signed_ns(change.delta_ns)} "
            f"| {signed_interval_text(change.ci95_ns)} | {change.verdict} | {moved} |"
        )
    if delta.instructions is not None:
        lines += ["", *_counts(delta.instructions)]
    lines += ["", *(f"- {_cell(warning)}" for warning in delta.warnings)]
    return "\n".join(lines).rstrip() + "\n"


def junit(outcome: Outcome) -> str:
    """JUnit XML: one test case per limit, and one for the verdict where there is no limit."""
    name, sentence = plain(outcome.name), outcome.delta.sentence
    cases = [(finding.limit.name, str(finding), finding.state == BROKEN) for finding in outcome.findings]
    cases = cases or [("verdict", plain(sentence), outcome.regressed)]
    failures = sum(failed for _, _, failed in cases)
    suite = ET.Element("testsuite", name="overhead-lens check", tests=str(len(cases)), failures=str(failures))
    for title, text, failed in cases:
        case = ET.SubElement(suite, "testcase", classname=f"overhead-lens.{name}", name=title)
        if failed:
            ET.SubElement(case, "failure", message=text).text = plain(sentence)
        else:
            ET.SubElement(case, "system-out").text = text
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _limits(findings: Sequence[LimitFinding | CountFinding]) -> list[str]:
    """A table and an empty line; nothing without limits."""
    if not findings:
        return []
    rows = [
        f"| {finding.limit.name} | {finding.allowed} | {finding.delta} "
        f"| {signed_interval_text(finding.ci95_ns) if isinstance(finding, LimitFinding) else 'exact'} | {finding.state} |"
        for finding in findings
    ]
    return ["| limit | allowed | measured | 95 % interval | |", "|---|---|---|---|---|", *rows, ""]


def _counts(delta: InstructionDelta) -> list[str]:
    """A sentence and the categories in instructions per call."""
    lines = [f"{_cell(delta.sentence)}.", ""]
    lines += ["| instructions in | base | new | difference | of the base | moved most |", "|---|---|---|---|---|---|"]
    for change in delta.host:
        if change.base_count or change.new_count:
            moved = (
                f"{signed_count(change.contributors[0].delta_count)} {_cell(change.contributors[0].name)}"
                if change.contributors
                else ""
            )
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
