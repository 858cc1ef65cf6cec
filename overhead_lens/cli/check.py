"""``overhead-lens check``: profile again what a baseline holds, and fail where it became slower or takes more instructions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overhead_lens.errors import EXIT_REGRESSION, MeasurementError, UsageError
from overhead_lens.terminal.arguments import TIMEOUT_S, Inputs, Quiet, Rules, Timeout, directory_option
from overhead_lens.terminal.completion import complete_capture, complete_target

if TYPE_CHECKING:
    from overhead_lens.machine.request import Request
    from overhead_lens.studies.check.outcome import Outcome, TimeOutcome


def check(
    baseline: Annotated[
        Path, typer.Argument(help="The capture to compare the current code with.", autocompletion=complete_capture)
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            help="What to profile. Default: the target stored in the baseline.", autocompletion=complete_target
        ),
    ] = None,
    inputs: Inputs = None,
    max_: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            help="Allowed increase, repeatable: total=3%, guard=100ns, instructions=0.5%, instructions.guard=100.",
        ),
    ] = None,
    instructions: Annotated[
        bool,
        typer.Option(
            "--instructions", help="Count instructions instead of timing; without --max, 0.5 % more are allowed."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Compare even if the machine or versions differ.")] = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Append a Markdown summary to FILE.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML to a new FILE.")] = None,
    output: Annotated[Path | None, directory_option("new capture")] = None,
    rules: Rules = None,
    timeout: Timeout = TIMEOUT_S,
    json_: Annotated[bool, typer.Option("--json", help="Print the difference and the limits as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure again and exit 1 if two captures break a limit or, without limits, are slower than the baseline."""
    from overhead_lens.captures.directory import read_capture
    from overhead_lens.recorder.single import record
    from overhead_lens.report import check_files
    from overhead_lens.report.forms import to_markdown
    from overhead_lens.stored import budget_of
    from overhead_lens.studies.check.gate import by_counts, by_time, confirmed, need_counts
    from overhead_lens.studies.check.limits import DEFAULT_COUNT_LIMIT, CountLimit, Limit, parse_limit
    from overhead_lens.studies.check.record import record_counts
    from overhead_lens.studies.check.rerun import request_of
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, show
    from overhead_lens.terminal.progress import progress

    parsed = [parse_limit(text) for text in max_ or []]
    limits = [limit for limit in parsed if isinstance(limit, Limit)]
    count_limits = [limit for limit in parsed if isinstance(limit, CountLimit)]
    if instructions and limits:
        raise UsageError(f"--instructions measures no times: use --max {limits[0].name} without it")
    if instructions and not count_limits:
        count_limits = [DEFAULT_COUNT_LIMIT]
    if junit is not None and junit.exists():
        raise UsageError(f"{junit} exists; nothing is overwritten, name another --junit")
    second = None if output is None else output.with_name(f"{output.name}.2")
    if second is not None and second.exists():
        raise UsageError(f"{second} exists, where a second capture would go: name another --output")
    base = read_capture(baseline)
    classifier = default_classifier(rules)
    before = budget_of(baseline, classifier)
    counts = need_counts(base.meta, before) if count_limits else None
    request = replace(request_of(base, target, output, timeout, inputs), instructions=bool(count_limits))
    outcome: Outcome
    with progress(quiet=quiet) as listener:
        if counts is not None and not limits:
            path = record_counts(request, counts.budget.calls, listener)
            outcome = by_counts(counts, path, count_limits, classifier, force=force)
        else:

            def look(request: Request) -> TimeOutcome:
                path = record(request, listener)
                return by_time(base.meta, baseline, path, (limits, count_limits), classifier, force=force)

            outcome = confirmed(look(request), lambda: look(replace(request, output=second)))
    _write(markdown, to_markdown(outcome), append=True)
    _write(junit, check_files.junit(outcome), append=False)
    show(outcome, Format(json_))
    if outcome.regressed:
        raise typer.Exit(EXIT_REGRESSION)


def _write(path: Path | None, text: str, *, append: bool) -> None:
    if path is None:
        return
    try:
        with path.open("a" if append else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise MeasurementError(f"cannot write to {path}: {error.strerror or error}") from error
