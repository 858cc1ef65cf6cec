"""``overhead-lens calibrate``: what torch.profiler's events cost on this machine."""

from __future__ import annotations

from typing import Annotated

from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import option, refuse_on_windows

_SECONDS = 50


def calibrate(
    json_: Annotated[bool, option("--json", "calibration")] = False,
    timeout: given.Timeout = given.TIMEOUT_S,
    quiet: given.Quiet = False,
) -> None:
    """Measure the cost of torch.profiler's events and the machine's peaks; later profiles use them."""
    from overhead_lens.recorder.calibrate import calibrate_machine
    from overhead_lens.terminal.output import Format, show
    from overhead_lens.terminal.progress import announcement, progress

    refuse_on_windows("calibrate")
    with progress(quiet=quiet, begins=announcement("this machine", _SECONDS)) as listener:
        calibrated = calibrate_machine(timeout, listener)
    show(calibrated, Format(json_))
