"""``overhead-lens ladder``: what each layer of a call costs, by leaving it out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from overhead_lens.errors import UsageError
from overhead_lens.terminal.arguments import (
    TIMEOUT_S,
    Device,
    Force,
    Html,
    Inputs,
    Param,
    Quick,
    Quiet,
    Target,
    Timeout,
    assignments,
    directory_option,
    json_option,
)
from overhead_lens.terminal.call import CallOptions
from overhead_lens.terminal.command import TARGET as TO_MEASURE
from overhead_lens.terminal.command import option

# Of a small call on two cores.
_SECONDS, _QUICK_SECONDS = 120, 60


def ladder(
    target: Target,
    inputs: Inputs = None,
    mode: Annotated[
        str | None, option(TO_MEASURE, "Mode of torch.compile for the compiled rungs.", metavar="MODE")
    ] = None,
    device: Device = None,
    param: Param = None,
    quick: Quick = False,
    output: Annotated[Path | None, directory_option("ladder")] = None,
    timeout: Timeout = TIMEOUT_S,
    html: Html = None,
    json_: Annotated[bool, json_option("ladder")] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Measure the cost of each layer of a compiled call by removing layers one by one."""
    from overhead_lens.machine.request import QUICK, STANDARD
    from overhead_lens.studies.ladder.analysis import RUNGS, ladder_of
    from overhead_lens.studies.ladder.record import record_ladder
    from overhead_lens.terminal.output import Format, show
    from overhead_lens.terminal.progress import announcement, progress

    if sys.platform == "win32":
        raise UsageError("ladder measures on Linux and macOS only; ladders made there can be read here")
    options = CallOptions(inputs, True, mode, assignments(param or [], device))
    request = options.request(target, timeout, QUICK if quick else STANDARD, output)
    begins = announcement(target, _QUICK_SECONDS if quick else _SECONDS)
    with progress(quiet=quiet, begins=begins) as listener:
        path = record_ladder(request, list(RUNGS), listener)
        measured = ladder_of(path)
    show(measured, Format(json_, html, force=force))
