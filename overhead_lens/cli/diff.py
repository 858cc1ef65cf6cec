"""``overhead-lens diff``: what changed between two stored captures, or between two exported traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import EXIT_REGRESSION, UsageError
from overhead_lens.terminal.arguments import Html, Margin, Rules, json_option
from overhead_lens.terminal.completion import complete_capture_or_trace


def diff(
    base: Annotated[
        Path,
        typer.Argument(help="Capture, or exported trace, to compare with.", autocompletion=complete_capture_or_trace),
    ],
    new: Annotated[
        Path, typer.Argument(help="Capture, or trace, that may be slower.", autocompletion=complete_capture_or_trace)
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Compare captures of different machines, versions or sizes.")
    ] = False,
    margin: Margin = 1.0,
    rules: Rules = None,
    html: Html = None,
    json_: Annotated[bool, json_option("difference")] = False,
) -> None:
    """Compare two captures or runs; exit 1 when the new one is slower. Of traces or watched processes: what changed."""
    from overhead_lens.api import compare_captures
    from overhead_lens.captures.directory import schema_of
    from overhead_lens.comparison.model import Delta
    from overhead_lens.stored import compare_traces
    from overhead_lens.studies.attach.analysis import process_of
    from overhead_lens.studies.attach.delta import compare_processes
    from overhead_lens.studies.attach.stored import PROCESS
    from overhead_lens.studies.run.analysis import run_budget_of
    from overhead_lens.studies.run.delta import RunDelta, compare_runs
    from overhead_lens.studies.run.stored import RUN
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, show

    classifier = default_classifier(rules)
    form = Format(json_, html, classifier)
    if base.is_file() and new.is_file():
        show(compare_traces(base, new, classifier), form)
        return
    if base.is_file() or new.is_file():
        raise UsageError("a trace compares with a trace, a capture with a capture")
    schemas = [schema_of(path) for path in (base, new)]
    for kind in (PROCESS, RUN):
        if len({kind.is_of(schema) for schema in schemas}) > 1:
            raise UsageError(
                "a watched process compares with a watched process, a run with a run, a capture with a capture"
            )
    if PROCESS.is_of(schemas[0]):
        show(compare_processes(process_of(base, classifier), process_of(new, classifier), margin / 100), form)
        return
    delta: Delta | RunDelta
    if RUN.is_of(schemas[0]):
        delta = compare_runs(run_budget_of(base, classifier), run_budget_of(new, classifier), margin / 100)
    else:
        delta = compare_captures(base, new, classifier, margin / 100, force=force)
    show(delta, form)
    if delta.verdict == "slower":
        raise typer.Exit(EXIT_REGRESSION)
