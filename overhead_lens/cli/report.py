"""``overhead-lens report``: the result that a stored directory holds, analyzed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import argument, option, refuse
from overhead_lens.terminal.completion import complete_capture
from overhead_lens.terminal.newest import newest_or


def report(
    context: typer.Context,
    capture: Annotated[
        Path | None, argument("DIR", "Directory of a stored result. Default: the newest in ./traces.", complete_capture)
    ] = None,
    rules: given.Rules = None,
    html: given.Html = None,
    json_: Annotated[bool, option("--json", "result")] = False,
    force: given.Force = False,
) -> None:
    """Print a stored capture, run, job, watched process, ladder, sweep, comparison or advice."""
    from overhead_lens.directories import load_directory, uses_rules
    from overhead_lens.taxonomy.classifier import default_classifier

    capture = newest_or(capture)
    classifier = default_classifier(rules)
    result = load_directory(capture, classifier)
    if not uses_rules(capture):
        refuse(context, f"with {capture}, whose times have no categories", "rules")
    from overhead_lens.terminal.output import Format, show

    show(result, Format(json_, html, classifier, force=force))
