"""``overhead-lens export``: a capture in the formats of other viewers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import argument, option
from overhead_lens.terminal.completion import complete_capture

Format: TypeAlias = Literal["chrome", "collapsed", "perfetto", "speedscope"]

_NAMES = {
    "chrome": "chrome.json.gz",
    "collapsed": "stacks.collapsed",
    "perfetto": "export.pftrace",
    "speedscope": "speedscope.json",
}


def export(
    capture: Annotated[Path, argument("CAPTURE", "A capture directory.", complete_capture)],
    format_: Annotated[Format, option("-f --format FORMAT")] = "perfetto",
    rules: given.Rules = None,
    output: Annotated[Path | None, option("-o --output FILE", callback=given.new_file)] = None,
    force: given.Force = False,
) -> None:
    """Write a capture for another viewer."""
    from overhead_lens.directories import export_directory
    from overhead_lens.taxonomy.classifier import default_classifier

    target = output or capture / _NAMES[format_]
    if output is None and capture.is_dir():
        given.check_new_file("--output", target, force=force)
    export_directory(capture, target, format_, default_classifier(rules))
    typer.echo(str(target))
