"""``overhead-lens attach``: where the time of a running process goes, thread by thread."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overhead_lens.errors import UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import argument, option, refuse

if TYPE_CHECKING:
    from threading import Event

    from overhead_lens.studies.attach.record import AttachRequest
    from overhead_lens.taxonomy.classifier import Classifier

_SECONDS = 20.0
_TOP_S = 3.0


def attach(
    context: typer.Context,
    pid: Annotated[int, argument("PID", "Process ID of a running Python process.", min=1)],
    duration: Annotated[
        float | None, option("-d --duration SECONDS", _SECONDS, _TOP_S, callback=given.between(0.5, 86_400))
    ] = None,
    rate: Annotated[int | None, option("-r --rate N", callback=given.between(1, 1000))] = None,
    subprocesses: Annotated[bool, option("--subprocesses")] = False,
    top: Annotated[bool, option("--top")] = False,
    trace: Annotated[bool, option("--trace")] = False,
    output: Annotated[Path | None, option("-o --output DIR", "capture")] = None,
    rules: given.Rules = None,
    html: given.Html = None,
    json_: Annotated[bool, option("--json", "budgets")] = False,
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Watch a running process and print where the time of its threads goes; Ctrl-C ends the watch early."""
    from overhead_lens.captures.files import PERFETTO
    from overhead_lens.export.process import write_process_perfetto
    from overhead_lens.studies.attach.analysis import process_of
    from overhead_lens.studies.attach.record import AttachRequest, record_process
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.interrupt import until_interrupted
    from overhead_lens.terminal.output import Format, show_drawn
    from overhead_lens.terminal.progress import progress

    if sys.platform == "win32":
        raise UsageError("attach watches processes on Linux only; captures made there can be read here")
    if top:
        refuse(context, "with --top, which stores nothing", "trace", "output", "html", "json_", "force")
    if top and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--top needs a terminal: run it in one, or leave out --top")
    classifier = default_classifier(rules)
    seconds = duration or (_TOP_S if top else _SECONDS)
    request = AttachRequest(
        pid=pid, seconds=seconds, rate_hz=rate, subprocesses=subprocesses, trace=trace, output=output
    )
    with until_interrupted() as interrupted:
        if top:
            _refresh(request, classifier, interrupted)
            return
        with progress(quiet=quiet, begins=f"watching process {pid} for {request.seconds:g} s") as listener:
            path = record_process(request, interrupted, listener)
            listener.step("analyzing")
            budget = process_of(path, classifier)
    drawn = partial(write_process_perfetto, path, path / PERFETTO, classifier)
    show_drawn(budget, Format(json_, html, classifier, force=force), drawn, "capture")


def _refresh(request: AttachRequest, classifier: Classifier, interrupted: Event) -> None:
    """Draw one watch after the other in the same place until ``interrupted`` is set."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from overhead_lens.report.outlines.process import process_outline
    from overhead_lens.report.printers.terminal import Screen
    from overhead_lens.studies.attach.record import watch_once
    from overhead_lens.terminal.interrupt import until_q
    from overhead_lens.terminal.output import make_console
    from overhead_lens.terminal.progress import SILENT

    waiting = Text(f"watching process {request.pid}; q ends", style="dim")
    with until_q(interrupted), Live(waiting, console=make_console(), screen=True, auto_refresh=False) as live:
        while not interrupted.is_set():
            budget = watch_once(request, classifier, interrupted, SILENT)
            if budget is not None:
                live.update(Group(Screen(process_outline(budget)), Text("\nq ends", style="dim")), refresh=True)
