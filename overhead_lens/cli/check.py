"""``overhead-lens check``: profile again what a baseline holds, and fail where it became slower."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from overhead_lens.errors import EXIT_REGRESSION, MeasurementError, UsageError


def check(
    baseline: Annotated[Path, typer.Argument(help="A capture to hold the present code against.")],
    target: Annotated[
        str | None, typer.Argument(help="What to profile; as the baseline says where it is left out.")
    ] = None,
    max_: Annotated[
        list[str] | None,
        typer.Option("--max", help="NAME=NUMBER and %, ns, us or ms: what total or a category may take more."),
    ] = None,
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
    from overhead_lens.cli.present import make_console, show_delta
    from overhead_lens.cli.progress import progress
    from overhead_lens.cli.store import budget_of
    from overhead_lens.compare.difference import compare_budgets, differences
    from overhead_lens.compare.limits import BROKEN, check_limits, parse_limit
    from overhead_lens.report.check_files import junit as junit_text
    from overhead_lens.report.check_files import markdown as markdown_text

    limits = [parse_limit(text) for text in max_ or []]
    if junit is not None and junit.exists():
        raise UsageError(f"{junit} exists; nothing is overwritten, name another --junit")
    base = read_capture(baseline)
    classifier = default_classifier(rules)
    before = budget_of(baseline, classifier)
    with progress(quiet=quiet) as listener:
        path = record(request_of(base.meta, target, output, timeout), listener)
    found = differences(base.meta, read_capture(path).meta)
    if found and not force:
        raise UsageError(f"the baseline differs in {'; '.join(found)}: update it, or compare all the same with --force")
    delta = compare_budgets(before, budget_of(path, classifier))
    findings = check_limits(delta, limits)
    broken = [finding for finding in findings if finding.state == BROKEN]
    regressed = bool(broken) if limits else delta.verdict == "slower"
    _write(markdown, markdown_text(delta, findings, regressed=regressed), append=True)
    _write(junit, junit_text(delta, findings, regressed=regressed), append=False)
    if json_:
        print(json.dumps(_document(delta, findings, regressed=regressed), indent=1))
    else:
        show_delta(delta, as_json=False)
        for finding in findings:
            make_console().print(str(finding), style="red" if finding.state == BROKEN else "")
    if regressed:
        raise typer.Exit(EXIT_REGRESSION)


def _write(path: Path | None, text: str, *, append: bool) -> None:
    if path is None:
        return
    try:
        with path.open("a" if append else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise MeasurementError(f"cannot write to {path}: {error.strerror or error}") from error


def _document(delta: Any, findings: Any, *, regressed: bool) -> dict[str, Any]:
    from overhead_lens.report.json import delta_document

    rows = [
        {
            "name": finding.limit.name,
            "allowed_ns": round(finding.allowed_ns, 1),
            "delta_ns": float(finding.delta_ns),
            "ci95_ns": [round(bound, 1) for bound in finding.ci95_ns],
            "state": finding.state,
        }
        for finding in findings
    ]
    return {**delta_document(delta), "limits": rows, "regressed": regressed}
