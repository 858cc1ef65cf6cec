"""The two gates: by time, with counts beside it or not, and by counts of instructions alone."""

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
        meta: Of the baseline.
        baseline: The baseline's capture.
        path: The new one.
        limits: In time and in instructions.
        classifier: For both.
        force: Compare whatever differs.

    Raises:
        UsageError: The two are not comparable.
        MeasurementError: Instructions are limited and could not be counted.
    """
    _comparable(differences(meta, read_capture(path).meta), force=force)
    before, after = budgets_of((baseline, path), classifier)
    delta = compare_budgets(before, after)
    findings: list[LimitFinding | CountFinding] = list(check_limits(delta, limits[0]))
    if limits[1]:
        if delta.instructions is None:
            reasons = [each for each in after.breakdown.warnings if each.startswith(_NO_COUNTS)]
            raise MeasurementError(reasons[0] if reasons else _NO_COUNTS)
        findings += check_counts(delta.instructions, limits[1])
    broken = any(finding.state == BROKEN for finding in findings)
    return TimeOutcome(delta, findings, broken if findings else delta.verdict == "slower")


def by_counts(
    meta: CaptureMeta, before: Budget, path: Path, limits: Sequence[CountLimit], classifier: Classifier, *, force: bool
) -> CountOutcome:
    """Hold new counts, and no times, against a baseline's budget; other arguments and errors as for ``by_time``."""
    new_meta, output = read_counts(path)
    _comparable(instruction_differences(meta, new_meta), force=force)
    base = before.breakdown.instructions
    assert base is not None
    delta = compare_instructions(base, instruction_budget(read_callgrind(output), base.calls, classifier))
    findings = check_counts(delta, limits)
    regressed = any(finding.state == BROKEN for finding in findings)
    return CountOutcome(new_meta.subject, before.breakdown.capture, str(path), base.calls, delta, findings, regressed)


def need_counts(before: Budget) -> None:
    """A limit in instructions needs a baseline that has them.

    Raises:
        UsageError: It has none.
    """
    if before.breakdown.instructions is None:
        reasons = [each for each in before.breakdown.warnings if each.startswith(_NO_COUNTS)]
        why = reasons[0] if reasons else _NO_COUNTS
        raise UsageError(f"the baseline has {why}; record it with profile --instructions")


def _comparable(found: Sequence[str], *, force: bool) -> None:
    if found and not force:
        raise UsageError(f"the baseline differs in {'; '.join(found)}: update it, or compare all the same with --force")
