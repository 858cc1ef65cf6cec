"""``overhead-lens export``: a capture in the formats of other viewers."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import UsageError
from overhead_lens.terminal.completion import complete_capture


class Format(str, Enum):
    """What can be written."""

    chrome = "chrome"
    collapsed = "collapsed"
    perfetto = "perfetto"
    speedscope = "speedscope"


_NAMES = {
    Format.chrome: "chrome.json.gz",
    Format.collapsed: "stacks.collapsed",
    Format.perfetto: "export.pftrace",
    Format.speedscope: "speedscope.json",
}


def export(
    capture: Annotated[Path, typer.Argument(help="A capture directory.", autocompletion=complete_capture)],
    to: Annotated[Format, typer.Option("--to", help="Output format.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write. Default: a file in the capture.")
    ] = None,
) -> None:
    """Write a capture for another viewer."""
    from overhead_lens.directories import export_directory
    from overhead_lens.taxonomy.classifier import default_classifier

    target = output or capture / _NAMES[to]
    if target.exists():
        raise UsageError(f"{target} exists; nothing is overwritten, name another --output")
    export_directory(capture, target, to.value, default_classifier())
    typer.echo(str(target))
