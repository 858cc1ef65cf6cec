"""``overhead-lens open``: a capture or any trace in the Perfetto UI."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import UsageError


def open_(
    target: Annotated[Path, typer.Argument(help="A capture directory or a trace file.")],
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Start a browser, or only print the address.")
    ] = True,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the browser.", min=1.0, max=1e6)] = 600.0,
) -> None:
    """Show a trace in the Perfetto UI; it is handed over on this machine and leaves it for nowhere."""
    from overhead_lens.captures.directory import read_capture, schema_of
    from overhead_lens.captures.files import PERFETTO
    from overhead_lens.errors import MeasurementError
    from overhead_lens.export.launcher import serve
    from overhead_lens.instruments.clock.evidence import read_blocks
    from overhead_lens.studies.attach.stored import PROCESS, read_process

    trace = target
    if target.is_dir():
        # What is damaged is not shown as if it were whole.
        if PROCESS.is_of(schema_of(target)):
            read_process(target)
        else:
            read_blocks(read_capture(target))
        trace = target / PERFETTO
    if not trace.is_file():
        raise UsageError(f"no trace {trace}")

    def announce(address: str) -> None:
        typer.echo(f"{address}\nopen this address, then click the button; Ctrl-C ends")
        if browser:
            webbrowser.open_new_tab(address)

    if not serve(trace, timeout_s=timeout, on_ready=announce):
        raise MeasurementError(f"no browser fetched the trace within {timeout:.0f} s")
