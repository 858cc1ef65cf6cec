"""What a gate leaves for a CI system: JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from overhead_lens.report.text.plain import plain
from overhead_lens.studies.check.limits import BROKEN, Outcome


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
