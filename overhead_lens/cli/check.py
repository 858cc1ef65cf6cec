"""``overhead-lens check``: profile again what a baseline holds, and fail where it became slower or takes more instructions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overhead_lens.errors import EXIT_REGRESSION, UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import argument, option, refuse
from overhead_lens.terminal.completion import complete_capture
from overhead_lens.terminal.project import read_project

if TYPE_CHECKING:
    from overhead_lens.machine.request import Request
    from overhead_lens.studies.check.limits import Outcome, TimeOutcome


def check(
    context: typer.Context,
    baseline: Annotated[Path, argument("CAPTURE", "The capture to compare the current code with.", complete_capture)],
    target: given.StoredTarget = None,
    inputs: given.Inputs = None,
    max_: Annotated[list[str] | None, option("--max NAME=LIMIT")] = None,
    instructions: Annotated[
        bool, option("--instructions", "Count instructions instead of timing; without limits, 0.5 % more are allowed.")
    ] = False,
    quick: given.Quick = False,
    timeout: given.Timeout = given.TIMEOUT_S,
    rules: given.Rules = None,
    allow_mismatch: given.AllowMismatch = False,
    output: Annotated[Path | None, option("-o --output DIR", "new capture")] = None,
    html: given.Html = None,
    markdown: given.Markdown = None,
    junit: Annotated[Path | None, option("--junit FILE", callback=given.new_file)] = None,
    json_: Annotated[bool, option("--json", "difference and the limits")] = False,
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Measure again and exit 1 if times break a limit (without limits: are slower) in two captures, or counts in one."""
    from overhead_lens.captures.directory import read_capture
    from overhead_lens.machine.request import QUICK
    from overhead_lens.recorder.single import record
    from overhead_lens.report.forms import to_junit, to_markdown
    from overhead_lens.stored import budget_of
    from overhead_lens.studies.check.gate import by_counts, by_time, confirmed, need_counts, same_machine
    from overhead_lens.studies.check.limits import DEFAULT_COUNT_LIMIT, Limits, parse_limit
    from overhead_lens.studies.check.record import record_counts
    from overhead_lens.studies.check.rerun import request_of
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, append_markdown, show, write_text
    from overhead_lens.terminal.progress import announcement, progress

    allowed = given.allows_mismatch(force=force, allow_mismatch=allow_mismatch, files=(html, junit))
    configured = (
        [] if max_ else [one for one in read_project().max if not instructions or one.startswith("instructions")]
    )
    limits = Limits.of(map(parse_limit, max_ or configured))
    if instructions and limits.times:
        raise UsageError(f"--instructions measures no times: use --max {limits.times[0].name} without it")
    if instructions and not limits.counts:
        limits = Limits(counts=[DEFAULT_COUNT_LIMIT])
    place = output and output.absolute()
    second = place and place.with_name(f"{place.name}.2")
    if second is not None and second.exists():
        raise UsageError(f"{second} exists, where a second capture would go: name another --output")
    base = read_capture(baseline)
    classifier = default_classifier(rules)
    before = budget_of(baseline, classifier)
    counts = need_counts(base.meta, before) if limits.counts else None
    if limits.only_counts:
        refuse(context, "where instructions alone are counted", "quick")
    request = replace(request_of(base, target, output, timeout, inputs), instructions=bool(limits.counts))
    request = replace(request, effort=QUICK if quick else request.effort)
    if not limits.only_counts:
        same_machine(base.meta, force=allowed)
    outcome: Outcome
    with progress(quiet=quiet, begins=announcement(request.target.text)) as listener:
        if counts is not None and limits.only_counts:
            path = record_counts(request, counts.budget.calls, listener)
            outcome = by_counts(counts, path, limits.counts, classifier, force=allowed)
        else:

            def look(request: Request) -> TimeOutcome:
                path = record(request, listener)
                return by_time(base.meta, baseline, path, limits, classifier, force=allowed)

            outcome = confirmed(look(request), lambda: look(replace(request, output=second)))
    append_markdown(markdown, to_markdown(outcome))
    if junit is not None:
        write_text(junit, to_junit(outcome), force=force)
    show(outcome, Format(json_, html, classifier, force=force))
    if outcome.regressed:
        raise typer.Exit(EXIT_REGRESSION)
