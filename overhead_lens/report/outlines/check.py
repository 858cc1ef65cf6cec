"""The outcome of a check in words: its limits, then the difference."""

from __future__ import annotations

from dataclasses import replace

from overhead_lens.report.cells import names, numbers, row, signed_bounds, text
from overhead_lens.report.looks import LONGER
from overhead_lens.report.outline import Outline, Section, Table
from overhead_lens.report.outlines.delta import delta_outline, instruction_sections
from overhead_lens.studies.check.limits import BROKEN, LimitFinding
from overhead_lens.studies.check.outcome import Outcome, TimeOutcome


def outcome_outline(outcome: Outcome) -> Outline:
    """The outline of its difference below its limits."""
    title = f"{'Regression' if outcome.regressed else 'No regression'}: {outcome.name}"
    if isinstance(outcome, TimeOutcome):
        outline = delta_outline(outcome.delta)
        return replace(outline, title=title, about=[outline.title], sections=[*_limits(outcome), *outline.sections])
    return Outline(title, "", [*_limits(outcome), *instruction_sections(outcome.delta)])


def _limits(outcome: Outcome) -> list[Section]:
    columns = [names("limit"), *numbers("allowed", "measured"), names("95 % interval"), names("")]
    rows = [
        row(
            finding.limit.name,
            finding.allowed,
            finding.delta,
            signed_bounds(finding.ci95_ns) if isinstance(finding, LimitFinding) else text("exact"),
            text(finding.state, LONGER if finding.state == BROKEN else ""),
        )
        for finding in outcome.findings
    ]
    return [Section("Limits", [Table(columns, rows)], reach="everywhere")] if rows else []
