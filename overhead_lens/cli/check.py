"""``overhead-lens check``: profile again what a baseline holds, and fail where it became slower or takes more instructions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from overhead_lens.errors import EXIT_REGRESSION, MeasurementError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from overhead_lens.analysis.breakdown import Budget
    from overhead_lens.capture.record import Listener, Request
    from overhead_lens.categories import Classifier
    from overhead_lens.compare.limits import CountFinding, CountLimit, Finding, Limit

COUNTS_DELTA = "overhead-lens/counts-delta/1"

_NO_COUNTS = "no instruction counts"


def check(
    baseline: Annotated[Path, typer.Argument(help="A capture to hold the present code against.")],
    target: Annotated[
        str | None, typer.Argument(help="What to profile; as the baseline says where it is left out.")
    ] = None,
    max_: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            help="NAME=NUMBER and %, ns, us or ms: what total or a category may take more; "
            "instructions=0.5%, instructions.guard=100 in instructions per call.",
        ),
    ] = None,
    instructions: Annotated[
        bool,
        typer.Option(
            "--instructions", help="Count instructions and time nothing; without --max, 0.5 % more are allowed."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare with a baseline of another machine or version.")
    ] = False,
    markdown: Annotated[Path | None, typer.Option(help="Append a summary in Markdown to this file.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this new file.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Directory of the new capture; new or empty.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(help="Rules of your own (TOML), tried before the built-in ones.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds that one step of one worker may take.", min=1.0, max=1e6)
    ] = 300.0,
    json_: Annotated[bool, typer.Option("--json", help="Print the difference and the limits as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Exit 1 when a limit is broken, or, without limits, when the call became slower."""
    from overhead_lens.capture.directory import read_capture
    from overhead_lens.capture.record import record
    from overhead_lens.categories import default_classifier
    from overhead_lens.cli.again import request_of
    from overhead_lens.cli.present import make_console
    from overhead_lens.cli.progress import progress
    from overhead_lens.cli.store import budget_of
    from overhead_lens.compare.limits import BROKEN, DEFAULT_COUNT_LIMIT, CountLimit, Limit, parse_limit

    parsed = [parse_limit(text) for text in max_ or []]
    limits = [limit for limit in parsed if isinstance(limit, Limit)]
    count_limits = [limit for limit in parsed if isinstance(limit, CountLimit)]
    if instructions and limits:
        raise UsageError(f"--instructions times nothing: --max {limits[0].name} needs a check without it")
    if instructions and not count_limits:
        count_limits = [DEFAULT_COUNT_LIMIT]
    if junit is not None and junit.exists():
        raise UsageError(f"{junit} exists; nothing is overwritten, name another --junit")
    base = read_capture(baseline)
    classifier = default_classifier(rules)
    before = budget_of(baseline, classifier)
    if count_limits:
        _need_counts(before)
    request = replace(request_of(base.meta, target, output, timeout), instructions=bool(count_limits))
    only_counts = bool(count_limits) and not limits
    with progress(quiet=quiet) as listener:
        path = _count(request, before, listener) if only_counts else record(request, listener)
    outcome = (
        _by_counts(base.meta, before, path, count_limits, classifier, force=force)
        if only_counts
        else _by_time(base.meta, before, path, (limits, count_limits), classifier, force=force)
    )
    _write(markdown, outcome.markdown, append=True)
    _write(junit, outcome.junit, append=False)
    if json_:
        print(json.dumps(outcome.document, indent=1))
    else:
        console = make_console()
        outcome.show(console)
        for finding in outcome.findings:
            console.print(str(finding), style="red" if finding.state == BROKEN else "")
    if outcome.regressed:
        raise typer.Exit(EXIT_REGRESSION)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a gate found, in each of the forms it leaves in."""

    regressed: bool
    findings: Sequence[Finding | CountFinding]
    markdown: str
    junit: str
    document: dict[str, Any]
    show: Callable[[Console], None]


def _by_time(
    meta: Mapping[str, Any],
    before: Budget,
    path: Path,
    limits: tuple[Sequence[Limit], Sequence[CountLimit]],
    classifier: Classifier,
    *,
    force: bool,
) -> _Outcome:
    from overhead_lens.capture.directory import read_capture
    from overhead_lens.cli.store import budget_of
    from overhead_lens.compare.difference import compare_budgets, differences
    from overhead_lens.compare.limits import BROKEN, check_counts, check_limits
    from overhead_lens.report.check_files import junit, markdown
    from overhead_lens.report.delta_text import print_delta
    from overhead_lens.report.json import delta_document

    _comparable(differences(meta, read_capture(path).meta), force=force)
    after = budget_of(path, classifier)
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
    return _Outcome(
        regressed,
        findings,
        markdown(delta, findings, regressed=regressed),
        junit(name, delta.sentence, findings, regressed=regressed),
        {**delta_document(delta), "limits": [_row(each) for each in findings], "regressed": regressed},
        lambda console: print_delta(console, delta),
    )


def _by_counts(
    meta: Mapping[str, Any],
    before: Budget,
    path: Path,
    limits: Sequence[CountLimit],
    classifier: Classifier,
    *,
    force: bool,
) -> _Outcome:
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
    return _Outcome(
        regressed,
        findings,
        counts_markdown(delta, findings, name, regressed=regressed),
        junit(name, delta.sentence, findings, regressed=regressed),
        document,
        lambda console: print_instruction_delta(console, delta),
    )


def _count(request: Request, before: Budget, listener: Listener) -> Path:
    from overhead_lens.capture.record_counts import record_counts

    assert before.breakdown.instructions is not None
    return record_counts(request, before.breakdown.instructions.calls, listener)


def _need_counts(before: Budget) -> None:
    """A limit in instructions needs a baseline that has them."""
    if before.breakdown.instructions is None:
        reasons = [each for each in before.breakdown.warnings if each.startswith(_NO_COUNTS)]
        why = reasons[0] if reasons else _NO_COUNTS
        raise UsageError(f"the baseline has {why}; record it with profile --instructions")


def _comparable(found: Sequence[str], *, force: bool) -> None:
    if found and not force:
        raise UsageError(f"the baseline differs in {'; '.join(found)}: update it, or compare all the same with --force")


def _write(path: Path | None, text: str, *, append: bool) -> None:
    if path is None:
        return
    try:
        with path.open("a" if append else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise MeasurementError(f"cannot write to {path}: {error.strerror or error}") from error


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
