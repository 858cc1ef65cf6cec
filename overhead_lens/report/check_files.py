"""What a gate leaves for a CI system: a Markdown summary and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from overhead_lens.comparison.instructions import InstructionDelta, signed_count, signed_share
from overhead_lens.comparison.model import Delta
from overhead_lens.report.markdown import cell, delta_lines
from overhead_lens.report.text.blocks import signed_interval_text
from overhead_lens.report.text.plain import plain
from overhead_lens.studies.check.limits import BROKEN, CountFinding, LimitFinding
from overhead_lens.studies.check.outcome import Outcome, TimeOutcome


def markdown(outcome: Outcome) -> str:
    """A summary: verdict, limits, categories."""
    if isinstance(outcome, TimeOutcome):
        return _of_times(outcome.delta, outcome)
    return "\n".join([_headline(outcome), "", *_limits(outcome.findings), *_counts(outcome.delta)]) + "\n"


def _headline(outcome: Outcome) -> str:
    return f"### {'Regression' if outcome.regressed else 'No regression'}: {cell(outcome.name)}"


def _of_times(delta: Delta, outcome: Outcome) -> str:
    lines = [_headline(outcome), "", *delta_lines(delta, _limits(outcome.findings))]
    if delta.instructions is not None:
        lines += ["", *_counts(delta.instructions)]
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
    lines = [f"{cell(delta.sentence)}.", ""]
    lines += ["| instructions in | base | new | difference | of the base | moved most |", "|---|---|---|---|---|---|"]
    for change in delta.host:
        if change.base_count or change.new_count:
            moved = (
                f"{signed_count(change.contributors[0].delta_count)} {cell(change.contributors[0].name)}"
                if change.contributors
                else ""
            )
            lines.append(
                f"| {change.category} | {change.base_count:,} | {change.new_count:,} | {signed_count(change.delta_count)} "
                f"| {signed_share(change.delta_count, delta.base_count)} | {moved} |"
            )
    return lines
