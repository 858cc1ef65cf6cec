"""``overhead-lens report``: the result that a stored directory holds, analyzed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.terminal.arguments import Html, Rules, json_option
from overhead_lens.terminal.completion import complete_capture


def report(
    capture: Annotated[
        Path,
        typer.Argument(
            help="Directory of a capture, run, job, watched process, ladder, sweep, comparison or advice.",
            autocompletion=complete_capture,
        ),
    ],
    rules: Rules = None,
    html: Html = None,
    json_: Annotated[bool, json_option("budget")] = False,
) -> None:
    """Print a stored capture, run, job, watched process, ladder, sweep, comparison or advice."""
    from overhead_lens.directories import load_directory
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, show

    classifier = default_classifier(rules)
    show(load_directory(capture, classifier), Format(json_, html, classifier))
