"""Holds a new capture against a baseline: by time (and instructions), or by instructions alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from overhead_lens.budget.instructions import instruction_budget
from overhead_lens.budget.make import Budget
from overhead_lens.captures.directory import read_capture
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.difference import compare_budgets, differences
from overhead_lens.comparison.instructions import compare_instructions, instruction_differences
from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.readers.callgrind import read_callgrind
from overhead_lens.stored import budgets_of
from overhead_lens.studies.check.limits import (
    BROKEN,
    CountFinding,
    CountLimit,
    Limit,
    LimitFinding,
    check_counts,
    check_limits,
)
from overhead_lens.studies.check.outcome import CountOutcome, TimeOutcome
from overhead_lens.studies.check.stored import read_counts
from overhead_lens.taxonomy.classifier import Classifier

_NO_COUNTS = "no instruction counts"


def by_time(
    meta: CaptureMeta,
    baseline: Path,
    path: Path,
    limits: tuple[Sequence[Limit], Sequence[CountLimit]],
    classifier: Classifier,
    *,
    force: bool,
) -> TimeOutcome:
    """Hold a new capture against a baseline.

    Args:
        meta: The baseline's metadata.
        baseline: The baseline's directory.
        path: The new capture's directory.
        limits: Limits in time, and in instructions.
        classifier: Rules for both captures.
        force: Compare captures of different calls or machines.

    Raises:
        UsageError: The two cannot be compared.
        MeasurementError: Instructions are limited and could not be counted.
    """
    _comparable(differences(meta, read_capture(path).meta), force=force)
    before, after = budgets_of((baseline, path), classifier)
    delta = compare_budgets(before, after)
    findings: list[LimitFinding | CountFinding] = list(check_limits(delta, limits[0]))
    if limits[1]:
        if delta.instructions is None:
            raise MeasurementError(_why_no_counts(after))
        findings += check_counts(delta.instructions, limits[1])
    broken = any(finding.state == BROKEN for finding in findings)
    return TimeOutcome(delta, findings, broken if findings else delta.verdict == "slower")


def by_counts(
    meta: CaptureMeta, before: Budget, path: Path, limits: Sequence[CountLimit], classifier: Classifier, *, force: bool
) -> CountOutcome:
    """Hold new instruction counts against a baseline's budget; arguments and errors as for ``by_time``."""
    new_meta, output = read_counts(path)
    _comparable(instruction_differences(meta, new_meta), force=force)
    base = before.breakdown.instructions
    assert base is not None
    delta = compare_instructions(base, instruction_budget(read_callgrind(output), base.calls, classifier))
    findings = check_counts(delta, limits)
    regressed = any(finding.state == BROKEN for finding in findings)
    return CountOutcome(new_meta.subject, before.breakdown.capture, str(path), base.calls, delta, findings, regressed)


def need_counts(before: Budget) -> None:
    """Check that a baseline has instruction counts.

    Raises:
        UsageError: It has none.
    """
    if before.breakdown.instructions is None:
        raise UsageError(f"the baseline has {_why_no_counts(before)}; record it with profile --instructions")


def _why_no_counts(budget: Budget) -> str:
    return next((text for text in budget.breakdown.warnings if text.startswith(_NO_COUNTS)), _NO_COUNTS)


def _comparable(mismatches: Sequence[str], *, force: bool) -> None:
    if mismatches and not force:
        differing = "; ".join(mismatches)
        raise UsageError(f"the baseline differs in {differing}: update it, or compare all the same with --force")
