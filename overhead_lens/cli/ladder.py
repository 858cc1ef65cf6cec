"""``overhead-lens ladder``: what each layer of a call costs, by leaving it out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.call import CallOptions
from overhead_lens.terminal.command import option, refuse_on_windows

# Of a small call on two cores.
_SECONDS, _QUICK_SECONDS = 120, 60


def ladder(
    target: given.Target,
    inputs: given.Inputs = None,
    mode: Annotated[str | None, option("--mode MODE", " for the compiled rungs")] = None,
    device: given.Device = None,
    param: given.Param = None,
    quick: given.Quick = False,
    output: Annotated[Path | None, option("-o --output DIR", "ladder")] = None,
    timeout: given.Timeout = given.TIMEOUT_S,
    html: given.Html = None,
    json_: Annotated[bool, option("--json", "ladder")] = False,
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Measure the cost of each layer of a compiled call by removing layers one by one."""
    from overhead_lens.machine.request import QUICK, STANDARD
    from overhead_lens.studies.ladder.analysis import RUNGS, ladder_of
    from overhead_lens.studies.ladder.record import record_ladder
    from overhead_lens.terminal.output import Format, show
    from overhead_lens.terminal.progress import announcement, progress

    refuse_on_windows("ladder", "; ladders made there can be read here")
    options = CallOptions(inputs, True, mode, given.assignments(param or [], device))
    request = options.request(target, timeout, QUICK if quick else STANDARD, output)
    with progress(quiet=quiet, begins=announcement(target, _QUICK_SECONDS if quick else _SECONDS)) as listener:
        path = record_ladder(request, list(RUNGS), listener)
        measured = ladder_of(path)
    show(measured, Format(json_, html, force=force))
