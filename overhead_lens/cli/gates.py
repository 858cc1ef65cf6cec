"""The two gates of ``overhead-lens check``: by time, with counts beside it or not, and by counts of instructions alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead_lens.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from overhead_lens.analysis.breakdown import Budget
    from overhead_lens.categories import Classifier
    from overhead_lens.compare.limits import CountFinding, CountLimit, Finding, Limit

COUNTS_DELTA = "overhead-lens/counts-delta/1"

_NO_COUNTS = "no instruction counts"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a gate found, in each of the forms it leaves in."""

    regressed: bool
    findings: Sequence[Finding | CountFinding]
    markdown: str
    junit: str
    document: dict[str, Any]
    show: Callable[[Console], None]


def by_time(
    meta: Mapping[str, Any],
    baseline: Path,
    path: Path,
    limits: tuple[Sequence[Limit], Sequence[CountLimit]],
    classifier: Classifier,
    *,
    force: bool,
) -> Outcome:
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
    from overhead_lens.capture.directory import read_capture
    from overhead_lens.cli.store import budgets_of
    from overhead_lens.compare.difference import compare_budgets, differences
    from overhead_lens.compare.limits import BROKEN, check_counts, check_limits
    from overhead_lens.report.check_files import junit, markdown
    from overhead_lens.report.delta_text import print_delta
    from overhead_lens.report.json import delta_document

    _comparable(differences(meta, read_capture(path).meta), force=force)
    before, after = budgets_of((baseline, path), classifier)
    delta = compare_budgets(before, after)
    findings: list[Finding | CountFinding] = list(check_limits(delta, limits[0]))
    if limits[1]:
        if delta.instructions is None:
            reasons = [each for each in after.breakdown.warnings if each.startswith(_NO_COUNTS)]
            raise MeasurementError(reasons[0] if reasons else _NO_COUNTS)
        findings += check_counts(delta.instructions, limits[1])
    broken = any(finding.state == BROKEN for finding in findings)
    regressed = broken if findings else delta.verdict == "slower"
    name = f"{delta.new.scenario}:{delta.new.variant}"
    return Outcome(
        regressed,
        findings,
        markdown(delta, findings, regressed=regressed),
        junit(name, delta.sentence, findings, regressed=regressed),
        {**delta_document(delta), "limits": [_row(each) for each in findings], "regressed": regressed},
        lambda console: print_delta(console, delta),
    )


def by_counts(
    meta: Mapping[str, Any],
    before: Budget,
    path: Path,
    limits: Sequence[CountLimit],
    classifier: Classifier,
    *,
    force: bool,
) -> Outcome:
    """Hold new counts, and no times, against a baseline's budget; other arguments and errors as for ``by_time``."""
    from overhead_lens.analysis.instructions import instruction_budget
    from overhead_lens.capture.directory import read_counts
    from overhead_lens.compare.instructions import compare_instructions, instruction_differences
    from overhead_lens.compare.limits import BROKEN, check_counts
    from overhead_lens.report.check_files import counts_markdown, junit
    from overhead_lens.report.delta_text import print_instruction_delta
    from overhead_lens.report.json import instruction_delta_document
    from overhead_lens.trace.callgrind import read_callgrind

    new_meta, output = read_counts(path)
    _comparable(instruction_differences(meta, new_meta), force=force)
    base = before.breakdown.instructions
    assert base is not None
    delta = compare_instructions(base, instruction_budget(read_callgrind(output), base.calls, classifier))
    findings = check_counts(delta, limits)
    regressed = any(finding.state == BROKEN for finding in findings)
    name = f"{new_meta['scenario']}:{new_meta['variant']}"
    document = {
        "schema": COUNTS_DELTA,
        "scenario": new_meta["scenario"],
        "variant": new_meta["variant"],
        "compile": new_meta["compile"],
        "params": new_meta["params"],
        "base": before.breakdown.capture,
        "new": str(path),
        "calls": base.calls,
        "instructions": instruction_delta_document(delta),
        "limits": [_row(each) for each in findings],
        "regressed": regressed,
    }
    return Outcome(
        regressed,
        findings,
        counts_markdown(delta, findings, name, regressed=regressed),
        junit(name, delta.sentence, findings, regressed=regressed),
        document,
        lambda console: print_instruction_delta(console, delta),
    )


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


def _row(finding: Finding | CountFinding) -> dict[str, Any]:
    """A limit and what was found, as JSON values."""
    from overhead_lens.compare.limits import Finding

    if isinstance(finding, Finding):
        return {
            "name": finding.limit.name,
            "allowed_ns": round(finding.allowed_ns, 1),
            "delta_ns": float(finding.delta_ns),
            "ci95_ns": [round(bound, 1) for bound in finding.ci95_ns],
            "state": finding.state,
        }
    return {
        "name": finding.limit.name,
        "allowed_count": round(finding.allowed_count, 1),
        "delta_count": finding.delta_count,
        "state": finding.state,
    }
