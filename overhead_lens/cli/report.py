"""``overhead-lens report``: the budget of a stored capture, or a stored ladder, sweep or comparison, analyzed again."""

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
            help="Directory of a capture, a process, a ladder, a sweep or a comparison.",
            autocompletion=complete_capture,
        ),
    ],
    rules: Rules = None,
    html: Html = None,
    json_: Annotated[bool, json_option("budget")] = False,
) -> None:
    """Print the budget of a stored capture or process, or a stored ladder, sweep or comparison."""
    from overhead_lens.directories import load_directory
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, show

    classifier = default_classifier(rules)
    show(load_directory(capture, classifier), Format(json_, html, classifier))
