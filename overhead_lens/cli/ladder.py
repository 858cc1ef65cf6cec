"""``overhead-lens ladder``: what each layer of a call costs, by leaving it out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overhead_lens.cli.arguments import (
    TIMEOUT_S,
    Device,
    Param,
    Quick,
    Quiet,
    Target,
    Timeout,
    assignments,
    compile_options,
    directory_option,
    json_option,
)
from overhead_lens.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from overhead_lens.analysis.ladder import Ladder

PICTURE = "waterfall.svg"


def ladder(
    target: Target,
    mode: Annotated[str | None, typer.Option(help="torch.compile's mode for the compiled rungs.")] = None,
    device: Device = None,
    param: Param = None,
    quick: Quick = False,
    output: Annotated[Path | None, directory_option("ladder")] = None,
    timeout: Timeout = TIMEOUT_S,
    json_: Annotated[bool, json_option("ladder")] = False,
    quiet: Quiet = False,
) -> None:
    """Time a call with one thing after another left out: guards, eval frame, allocation, wrapper."""
    from overhead_lens.analysis.ladder import RUNGS
    from overhead_lens.capture.record import QUICK, STANDARD, Request
    from overhead_lens.capture.record_ladder import record_ladder
    from overhead_lens.cli.present import failure_of
    from overhead_lens.cli.progress import progress
    from overhead_lens.report.waterfall import draw_ladder
    from overhead_lens.scenario import parse_target

    if sys.platform == "win32":
        raise UsageError("ladder measures on Linux and macOS only; ladders made there can be read here")
    found = parse_target(target)
    request = Request(
        path=found.path,
        variant=found.variant,
        params=assignments(param or [], device),
        compile_options=compile_options(compile_=True, mode=mode) or {},
        output=output,
        parent=Path("traces"),
        timeout_s=timeout,
        effort=QUICK if quick else STANDARD,
        command=("overhead-lens", *sys.argv[1:]),
    )
    with progress(quiet=quiet) as listener:
        path = record_ladder(request, list(RUNGS), listener)
        measured = read(path)
        not_drawn = failure_of(lambda: draw_ladder(measured, path / PICTURE))
    show(measured, as_json=json_)
    if not_drawn is not None:
        raise MeasurementError(f"{not_drawn}; the ladder is complete but for this picture") from not_drawn


def read(path: Path) -> Ladder:
    """A stored ladder."""
    from overhead_lens.analysis.ladder import make_ladder
    from overhead_lens.capture.directory import read_ladder

    meta, rows = read_ladder(path)
    return make_ladder(meta, rows, str(path))


def show(measured: Ladder, *, as_json: bool) -> None:
    """Print a ladder."""
    from overhead_lens.cli.present import make_console
    from overhead_lens.report.ladder_json import ladder_document
    from overhead_lens.report.ladder_text import print_ladder

    if as_json:
        print(json.dumps(ladder_document(measured), indent=1))
    else:
        print_ladder(make_console(), measured)
