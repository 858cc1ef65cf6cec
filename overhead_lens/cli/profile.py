"""``overhead-lens profile``: measure a scenario or a function and print its closed budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overhead_lens.errors import EXIT_INTERRUPTED, Interrupted, MeasurementError, UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.call import CallOptions, takes_call_options
from overhead_lens.terminal.command import option, refuse_on_windows
from overhead_lens.units import parse_bytes

if TYPE_CHECKING:
    from overhead_lens.machine.request import Request
    from overhead_lens.taxonomy.classifier import Classifier
    from overhead_lens.terminal.output import Format

# Of a small call on two cores, by (quick, compiled); with warm and cold caches in turns, by quick.
_SECONDS = {(False, False): 20, (True, False): 10, (False, True): 30, (True, True): 20}
_COLD_SECONDS = {False: 90, True: 45}


@takes_call_options
def profile(
    target: given.Target,
    options: CallOptions,
    quick: given.Quick = False,
    until: Annotated[str | None, option("--until PERCENT")] = None,
    instructions: Annotated[
        bool, option("--instructions", "Also count instructions with valgrind; counts vary far less than times.")
    ] = False,
    cold: Annotated[str | None, option("--cold SIZE")] = None,
    timeout: given.Timeout = given.TIMEOUT_S,
    rules: given.Rules = None,
    output: Annotated[Path | None, option("-o --output DIR", "capture")] = None,
    html: given.Html = None,
    json_: Annotated[bool, option("--json", "budget")] = False,
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Measure a scenario or a plain function and print where its time goes."""
    from overhead_lens.machine.request import QUICK, STANDARD
    from overhead_lens.recorder.single import record
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format
    from overhead_lens.terminal.progress import announcement, progress
    from overhead_lens.terminal.refine import MOST_PROCESSES, Refining, ending_early

    refuse_on_windows("profile", "; captures made there can be read here")
    classifier = default_classifier(rules)
    until_share = None if until is None else given.parse_share("--until", until, least=0.001, most=0.999)
    request = options.request(target, timeout, QUICK if quick else STANDARD, output)
    request = replace(request, instructions=instructions)
    form = Format(json_, html, classifier, force=force)
    if cold is not None:
        if until is not None or instructions:
            raise UsageError("--cold measures two sides in turns: leave --until and --instructions out")
        _compare_with_cold(request, parse_bytes(cold), form, classifier, quick=quick, quiet=quiet)
        return
    seconds = None if until is not None or instructions else _SECONDS[quick, request.compiles]
    begins = announcement(target, seconds)
    with ending_early() as interrupted, progress(quiet=quiet, begins=begins) as screen:
        watch = Refining(MOST_PROCESSES if until else request.effort.processes, classifier, screen, until_share)
        path = record(request, screen, watch)
        screen.step("analyzing")
        # Imported by now, while the first processes loaded.
        from overhead_lens.export.capture import draw
        from overhead_lens.stored import budget_of
        from overhead_lens.terminal.output import show_drawn

        try:
            budget = budget_of(path, classifier)
        except MeasurementError:
            if interrupted.is_set():
                # The first process was timed, but neither sampled nor traced.
                raise Interrupted from None
            raise
    show_drawn(budget.breakdown, form, lambda: draw(path, budget.breakdown, classifier), "capture")
    if interrupted.is_set():
        raise typer.Exit(EXIT_INTERRUPTED)


def _compare_with_cold(
    request: Request, displaced_bytes: int, form: Format, classifier: Classifier, *, quick: bool, quiet: bool
) -> None:
    """Measure the call in a hot loop and with displaced caches, in turns; a cold call is slower, which is not a failure."""
    from overhead_lens.api import measure_pair
    from overhead_lens.comparison.difference import MARGIN_SHARE
    from overhead_lens.recorder.paired import paired_effort
    from overhead_lens.terminal.output import show_drawn
    from overhead_lens.terminal.progress import announcement, progress

    effort = paired_effort(compiles=request.compiles)
    if quick:
        effort = replace(effort, processes=effort.processes // 2)
    hot = replace(request, effort=effort, output=None, displaced_bytes=0)
    pair = (hot, replace(hot, displaced_bytes=displaced_bytes))
    begins = announcement(f"{request.target.text} with warm and cold caches", _COLD_SECONDS[quick])
    with progress(quiet=quiet, begins=begins) as listener:
        compared = measure_pair(pair, request.output, classifier, MARGIN_SHARE, listener)
    show_drawn(compared.delta, form, lambda: compared.draw(classifier), "comparison")
