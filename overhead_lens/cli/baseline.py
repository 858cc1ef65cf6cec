"""``overhead-lens baseline update``: record a baseline again; the old one is kept beside it."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import Command, argument, examples
from overhead_lens.terminal.completion import complete_capture

app = typer.Typer(help="Baselines of `overhead-lens check`.")


@app.callback()
def _group() -> None:
    """Baselines of ``overhead-lens check``."""


@app.command(
    "update",
    cls=Command,
    epilog=examples("baseline update baselines/add1", "baseline update baselines/add1 my.py:f --inputs my.py:make"),
)
def update(
    baseline: Annotated[Path, argument("CAPTURE", "The capture to record again.", complete_capture)],
    target: given.StoredTarget = None,
    inputs: given.Inputs = None,
    timeout: given.Timeout = given.TIMEOUT_S,
    quiet: given.Quiet = False,
) -> None:
    """Record the baseline again; the old one is kept beside it."""
    from overhead_lens.captures.directory import read_capture
    from overhead_lens.recorder.single import record
    from overhead_lens.studies.check.rerun import request_of
    from overhead_lens.terminal.progress import announcement, progress

    old = read_capture(baseline)
    path = baseline.absolute()
    fresh = path.with_name(f"{path.name}.new")
    names = (path.with_name(f"{path.name}.{number}") for number in count(1))
    backup = next(name for name in names if not name.exists())
    if fresh.exists():
        raise UsageError(f"{fresh} is in the way: another update runs, or one was ended; move it away")
    request = request_of(old, target, fresh, timeout, inputs)
    with progress(quiet=quiet, begins=announcement(request.target.text)) as listener:
        record(request, listener)
    try:
        path.rename(backup)
        try:
            fresh.rename(path)
        except OSError:
            backup.rename(path)
            raise
    except OSError as error:
        raise MeasurementError(f"cannot put {fresh} in the place of {path}: {error.strerror or error}") from error
    typer.echo(f"{baseline} is new; the old one is {backup}")
