"""``overhead-lens profile``: measure a scenario and print its closed budget."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.cli.arguments import (
    TIMEOUT_S,
    Device,
    Mode,
    Param,
    Quick,
    Quiet,
    Rules,
    Target,
    Timeout,
    assignments,
    compile_options,
    directory_option,
    json_option,
)
from overhead_lens.errors import MeasurementError, UsageError


def profile(
    target: Target,
    compile_: Annotated[bool, typer.Option("--compile", help="Measure torch.compile of the variant.")] = False,
    mode: Mode = None,
    device: Device = None,
    param: Param = None,
    quick: Quick = False,
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Count instructions too, with valgrind: the same number each run.")
    ] = False,
    output: Annotated[Path | None, directory_option("capture")] = None,
    rules: Rules = None,
    timeout: Timeout = TIMEOUT_S,
    json_: Annotated[bool, json_option("budget")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure a scenario and print where its time goes."""
    from overhead_lens.capture.record import QUICK, STANDARD, Request, record
    from overhead_lens.categories import default_classifier
    from overhead_lens.cli.present import failure_of, show_breakdown
    from overhead_lens.cli.progress import progress
    from overhead_lens.cli.store import budget_of, draw
    from overhead_lens.scenario import parse_target

    if sys.platform == "win32":
        raise UsageError("profile measures on Linux and macOS only; captures made there can be read here")
    found = parse_target(target)
    classifier = default_classifier(rules)
    request = Request(
        path=found.path,
        variant=found.variant,
        params=assignments(param or [], device),
        compile_options=compile_options(compile_=compile_, mode=mode),
        output=output,
        parent=Path("traces"),
        timeout_s=timeout,
        target=target,
        effort=QUICK if quick else STANDARD,
        command=("overhead-lens", *sys.argv[1:]),
        instructions=instructions,
    )
    with progress(quiet=quiet) as listener:
        path = record(request, listener)
        listener.step("analyzing")
        budget = budget_of(path, classifier)
        not_drawn = failure_of(lambda: draw(path, budget.breakdown, classifier))
    show_breakdown(budget.breakdown, as_json=json_)
    if not_drawn is not None:
        raise MeasurementError(f"{not_drawn}; the capture is complete but for this picture") from not_drawn
