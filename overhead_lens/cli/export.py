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
    to: Annotated[Format, typer.Option("--to", help="Format.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write; by default one in the capture.")
    ] = None,
) -> None:
    """Write a capture for another viewer."""
    from overhead_lens.captures.directory import schema_of
    from overhead_lens.studies.attach.stored import PROCESS
    from overhead_lens.studies.run.stored import RUN

    target = output or capture / _NAMES[to]
    if target.exists():
        raise UsageError(f"{target} exists; nothing is overwritten, name another --output")
    schema = schema_of(capture)
    write = _write_process if PROCESS.is_of(schema) else _write_run if RUN.is_of(schema) else _write_call
    write(capture, to, target)
    typer.echo(str(target))


def _write_call(capture: Path, to: Format, target: Path) -> None:
    """Write the capture of a call."""
    from overhead_lens.captures.directory import read_capture
    from overhead_lens.captures.files import KINETO, KINETO_STACK
    from overhead_lens.export.capture import write_capture
    from overhead_lens.instruments.samples.evidence import read_samples
    from overhead_lens.readers.kineto.read import read_events
    from overhead_lens.stored import budget_of
    from overhead_lens.taxonomy.classifier import default_classifier

    stored = read_capture(capture)
    classifier = default_classifier()
    breakdown = budget_of(capture, classifier).breakdown
    if to is Format.perfetto:
        write_capture(capture, target, breakdown, classifier)
        return
    if to is Format.chrome:
        from overhead_lens.export.chrome import write_chrome
        from overhead_lens.export.lanes.budget import budget_lane
        from overhead_lens.export.lanes.drawn import Drawn

        source = stored.existing(KINETO_STACK) or stored.existing(KINETO)
        if source is None:
            raise UsageError(f"{capture} holds no trace to export")
        write_chrome(target, budget_lane(breakdown), Drawn(read_events(source)))
        return
    from overhead_lens.export.collapsed import write_collapsed
    from overhead_lens.export.speedscope import write_speedscope

    samples = read_samples(stored)
    if not samples.stacks:
        raise UsageError(f"{capture} holds no samples to export ({samples.taken.reason})")
    if to is Format.collapsed:
        write_collapsed(target, [(breakdown.subject.title, samples.stacks)])
    else:
        write_speedscope(target, breakdown, samples.stacks)


def _write_run(capture: Path, to: Format, target: Path) -> None:
    """Write the capture of a run."""
    from overhead_lens.export import run
    from overhead_lens.export.perfetto.run import write_run_perfetto
    from overhead_lens.taxonomy.classifier import default_classifier

    if to is Format.perfetto:
        write_run_perfetto(capture, target, default_classifier())
    elif to is Format.chrome:
        run.write_run_chrome(capture, target, default_classifier())
    elif to is Format.collapsed:
        run.write_run_collapsed(capture, target)
    else:
        run.write_run_speedscope(capture, target, default_classifier())


def _write_process(capture: Path, to: Format, target: Path) -> None:
    """Write the capture of a watched process."""
    from overhead_lens.export import process
    from overhead_lens.taxonomy.classifier import default_classifier

    if to is Format.chrome:
        raise UsageError("a watched process has stacks and no events: export it --to collapsed, perfetto or speedscope")
    if to is Format.perfetto:
        process.write_process_perfetto(capture, target, default_classifier())
    elif to is Format.collapsed:
        process.write_process_collapsed(capture, target)
    else:
        process.write_process_speedscope(capture, target)
