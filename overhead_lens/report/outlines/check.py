"""The outcome of a check in words: its limits, then the difference."""

from __future__ import annotations

from dataclasses import replace

from overhead_lens.report.cells import names, numbers, row, signed_bounds, text
from overhead_lens.report.looks import LONGER
from overhead_lens.report.outline import Cell, Outline, Section, Table
from overhead_lens.report.outlines.delta import delta_outline, instruction_sections
from overhead_lens.studies.check.limits import BROKEN, Finding, LimitFinding
from overhead_lens.studies.check.outcome import Outcome, TimeOutcome


def outcome_outline(outcome: Outcome) -> Outline:
    """The outline of its difference below its limits."""
    title = f"{'Regression' if outcome.regressed else 'No regression'}: {outcome.name}"
    if isinstance(outcome, TimeOutcome):
        told = delta_outline(outcome.delta)
        return replace(told, title=title, about=[told.title], sections=[*_limits(outcome), *told.sections])
    return Outline(title, "", [*_limits(outcome), *instruction_sections(outcome.delta)])


def _limits(outcome: Outcome) -> list[Section]:
    columns = [names("limit"), *numbers("allowed", "measured"), names("95 % interval"), names("")]
    rows = [
        row(
            found.limit.name,
            found.allowed,
            found.delta,
            _interval(found),
            text(found.state, LONGER if found.state == BROKEN else ""),
        )
        for found in outcome.findings
    ]
    return [Section("Limits", [Table(columns, rows)], reach="everywhere")] if rows else []


def _interval(found: Finding) -> Cell:
    return signed_bounds(found.ci95_ns) if isinstance(found, LimitFinding) else text("exact")
