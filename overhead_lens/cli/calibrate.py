"""``overhead-lens calibrate``: what torch.profiler's events cost on this machine."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from overhead_lens.errors import UsageError
from overhead_lens.terminal.arguments import Quiet, json_option


def calibrate(
    json_: Annotated[bool, json_option("calibration")] = False,
    timeout: Annotated[
        float, typer.Option(help="Give up if one step takes longer than this many seconds.", min=1.0, max=1e6)
    ] = 300.0,
    quiet: Quiet = False,
) -> None:
    """Measure the cost of torch.profiler's events and the machine's peaks; later profiles use them."""
    from overhead_lens.recorder.calibrate import calibrate_machine
    from overhead_lens.terminal.output import Format, show
    from overhead_lens.terminal.progress import progress

    if sys.platform == "win32":
        raise UsageError("calibrate measures on Linux and macOS only")
    with progress(quiet=quiet) as listener:
        calibrated = calibrate_machine(timeout, listener)
    show(calibrated, Format(json_))
