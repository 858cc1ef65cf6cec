"""``overhead-lens export``: a capture in the formats of other viewers."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import UsageError


class Format(str, Enum):
    """What can be written."""

    chrome = "chrome"
    perfetto = "perfetto"
    speedscope = "speedscope"


_NAMES = {Format.chrome: "chrome.json.gz", Format.perfetto: "export.pftrace", Format.speedscope: "speedscope.json"}


def export(
    capture: Annotated[Path, typer.Argument(help="A capture directory.")],
    to: Annotated[Format, typer.Option("--to", help="Format.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; by default one in the capture.")
    ] = None,
) -> None:
    """Write a capture for another viewer."""
    from overhead_lens.captures.directory import read_capture
    from overhead_lens.captures.files import KINETO, KINETO_STACK
    from overhead_lens.export.capture import write_picture
    from overhead_lens.instruments.samples.evidence import read_samples
    from overhead_lens.readers.kineto.read import read_events
    from overhead_lens.stored import budget_of
    from overhead_lens.taxonomy.classifier import default_classifier

    stored = read_capture(capture)
    target = output or capture / _NAMES[to]
    if target.exists():
        raise UsageError(f"{target} exists; nothing is overwritten, name another --output")
    classifier = default_classifier()
    breakdown = budget_of(capture, classifier).breakdown
    if to is Format.perfetto:
        write_picture(capture, target, breakdown, classifier)
    elif to is Format.chrome:
        from overhead_lens.export.chrome import write_chrome
        from overhead_lens.export.lanes.drawn import Drawn

        source = stored.existing(KINETO_STACK) or stored.existing(KINETO)
        if source is None:
            raise UsageError(f"{capture} holds no trace to export")
        write_chrome(target, breakdown, Drawn(read_events(source)))
    else:
        from overhead_lens.export.speedscope import write_speedscope

        samples = read_samples(stored)
        if not samples.stacks:
            raise UsageError(f"{capture} holds no samples to export ({samples.taken.reason})")
        write_speedscope(target, breakdown, samples.stacks)
    typer.echo(str(target))
