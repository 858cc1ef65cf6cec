"""Holds a new capture against a baseline: by time (and instructions), or by instructions alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from overhead_lens.budget.instructions import instruction_budget
from overhead_lens.budget.make import Budget
from overhead_lens.budget.model import InstructionBudget
from overhead_lens.captures.directory import read_capture
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.comparison.difference import compare_budgets, differences
from overhead_lens.comparison.instructions import compare_instructions, mismatches
from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine.environment import describe_machine
from overhead_lens.readers.callgrind import read_callgrind
from overhead_lens.stored import budgets_of
from overhead_lens.studies.check.limits import (
    BROKEN,
    DOUBTFUL,
    CountOutcome,
    Finding,
    Limit,
    Limits,
    TimeOutcome,
    check_counts,
    check_limits,
)
from overhead_lens.studies.check.stored import CountsMeta, read_counts
from overhead_lens.taxonomy.classifier import Classifier

# What is known of the machine before a worker starts.
_OF_MACHINE = ("host", "cpu")
# What decides a count beside the call. Machines may differ: all are x86-64 ones, and valgrind shows each the same processor.
_OF_COUNTS = ("torch", "python", "libc")

_NO_COUNTS = "no instruction counts"


def same_machine(meta: CaptureMeta, *, force: bool) -> None:
    """Check, before anything is measured, that a baseline was recorded on this machine.

    Raises:
        UsageError: It was recorded on another machine, and ``force`` is false.
    """
    sides = ({name: each.get(name) for name in _OF_MACHINE} for each in (meta.environment, describe_machine()))
    _comparable(mismatches(*sides), force=force)


def by_time(
    meta: CaptureMeta, baseline: Path, path: Path, limits: Limits, classifier: Classifier, *, force: bool
) -> TimeOutcome:
    """Hold a new capture against a baseline, with ``force`` even one of another call or machine.

    Raises:
        UsageError: The two cannot be compared.
        MeasurementError: Instructions are limited and could not be counted.
    """
    _comparable(differences(meta, read_capture(path).meta), force=force)
    before, after = budgets_of((baseline, path), classifier)
    delta = compare_budgets(before, after)
    findings: list[Finding] = list(check_limits(delta, limits.times))
    if limits.counts:
        if delta.instructions is None:
            raise MeasurementError(_why_no_counts(after))
        findings += check_counts(delta.instructions, limits.counts)
    broken = any(finding.state == BROKEN for finding in findings)
    return TimeOutcome(delta, findings, broken if findings else delta.verdict == "slower")


def confirmed(first: TimeOutcome, again: Callable[[], TimeOutcome]) -> TimeOutcome:
    """The outcome of a check: a capture whose times fail is followed by a second one, and fails where both do.

    Noise seldom breaks a limit twice. Instruction counts repeat, so one capture decides them.
    """
    broken = [finding for finding in first.findings if finding.state == BROKEN]
    if not first.regressed or any(finding.limit.counts for finding in broken):
        return first
    second = again()
    names = {finding.limit.name for finding in broken}
    findings = [
        replace(finding, state=DOUBTFUL)
        if finding.state == BROKEN and not finding.limit.counts and finding.limit.name not in names
        else finding
        for finding in second.findings
    ]
    regressed = any(finding.state == BROKEN for finding in findings) if findings else second.regressed
    reasons = "; ".join(map(str, broken)) or first.delta.sentence
    note = f"this is the second of two captures, since the first one failed: {reasons}"
    delta = replace(second.delta, warnings=(note, *second.delta.warnings))
    return TimeOutcome(delta, findings, regressed)


@dataclass(frozen=True, slots=True)
class Counts:
    """The instructions of a capture."""

    meta: CaptureMeta | CountsMeta
    budget: InstructionBudget
    place: str


def stored_counts(path: Path, classifier: Classifier) -> Counts:
    """Instruction counts that were stored without a clock.

    Raises:
        UsageError: The directory holds no complete counts.
    """
    meta, output = read_counts(path)
    budget = instruction_budget(read_callgrind(output), meta.instructions.calls, classifier)
    return Counts(meta, budget, str(path))


def by_counts(
    base: Counts, path: Path, limits: Sequence[Limit], classifier: Classifier, *, force: bool
) -> CountOutcome:
    """Hold new instruction counts against a baseline's; arguments and errors as for ``by_time``."""
    new = stored_counts(path, classifier)
    _comparable(count_mismatches(base.meta, new.meta), force=force)
    delta = compare_instructions(base.budget, new.budget)
    findings = check_counts(delta, limits)
    regressed = any(finding.state == BROKEN for finding in findings)
    return CountOutcome(new.meta.subject, base.place, new.place, base.budget.calls, delta, findings, regressed)


def count_mismatches(base: CaptureMeta | CountsMeta, new: CaptureMeta | CountsMeta) -> list[str]:
    """Reasons why the counts of two captures cannot be compared, one line each."""
    return mismatches(_context(base), _context(new))


def _context(meta: CaptureMeta | CountsMeta) -> dict[str, object]:
    subject = asdict(meta.subject)
    named = {subject.pop("kind"): subject.pop("name"), **subject, "compile_options": meta.compile_options}
    return {**named, **{key: meta.environment.get(key) for key in _OF_COUNTS}}


def need_counts(meta: CaptureMeta, before: Budget) -> Counts:
    """The instruction counts of a baseline.

    Raises:
        UsageError: It has none.
    """
    if before.breakdown.instructions is None:
        raise UsageError(f"the baseline has {_why_no_counts(before)}; record it with profile --instructions")
    return Counts(meta, before.breakdown.instructions, before.breakdown.capture)


def _why_no_counts(budget: Budget) -> str:
    return next((text for text in budget.breakdown.warnings if text.startswith(_NO_COUNTS)), _NO_COUNTS)


def _comparable(mismatches: Sequence[str], *, force: bool) -> None:
    if mismatches and not force:
        differing = "; ".join(mismatches)
        raise UsageError(f"the baseline differs in {differing}: update it, or compare anyway with --allow-mismatch")
