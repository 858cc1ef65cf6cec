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
        typer.Argument(help="Capture or exported trace to compare with.", autocompletion=complete_capture_or_trace),
    ],
    new: Annotated[
        Path, typer.Argument(help="Capture or trace that may be slower.", autocompletion=complete_capture_or_trace)
    ],
    force: Annotated[bool, typer.Option("--force", help="Compare even if machine, versions or sizes differ.")] = False,
    margin: Margin = 1.0,
    rules: Rules = None,
    html: Html = None,
    json_: Annotated[bool, json_option("difference")] = False,
) -> None:
    """Compare two captures or runs and exit 1 if the new one is slower. Also show what changed between traces or processes."""
    from overhead_lens.directories import compare_directories
    from overhead_lens.stored import compare_traces
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, show

    classifier = default_classifier(rules)
    if base.is_file() != new.is_file():
        raise UsageError("a trace compares with a trace, a capture with a capture")
    delta = (
        compare_traces(base, new, classifier)
        if base.is_file()
        else compare_directories(base, new, classifier, margin / 100, force=force)
    )
    show(delta, Format(json_, html, classifier))
    # Traces and watched processes say what changed, and not whether it became slower.
    if getattr(delta, "verdict", None) == "slower":
        raise typer.Exit(EXIT_REGRESSION)
