"""``overhead-lens advise``: try what would make a call faster, and say what helps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.call import CallOptions, takes_call_options
from overhead_lens.terminal.command import argument, option, refuse, refuse_on_windows
from overhead_lens.terminal.completion import complete_target

# A compiler may take long; what takes longer hangs.
_TIMEOUT_S = 120.0

# Of a small call on two cores.
_SECONDS, _QUICK_SECONDS = 180, 90


@takes_call_options
def advise(
    context: typer.Context,
    target: Annotated[
        str,
        argument(
            "TARGET|DIR",
            "A scenario or function, as for profile; or the directory of a capture or a run.",
            complete_target,
        ),
    ],
    options: CallOptions,
    quick: given.Quick = False,
    remedies: Annotated[Path | None, option("--remedies FILE", exists=True)] = None,
    output: Annotated[Path | None, option("-o --output DIR", "advice")] = None,
    rules: given.Rules = None,
    timeout: given.Timeout = _TIMEOUT_S,
    html: given.Html = None,
    markdown: given.Markdown = None,
    json_: Annotated[bool, option("--json", "advice")] = False,
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Try remedies on a call and show which of them make it faster."""
    from overhead_lens.captures.directory import read_capture
    from overhead_lens.directories import RUN, kind_of
    from overhead_lens.machine.request import QUICK, STANDARD
    from overhead_lens.report.forms import to_markdown
    from overhead_lens.studies.advise.analysis import advice_of
    from overhead_lens.studies.advise.record import record_advice
    from overhead_lens.studies.check.rerun import request_of
    from overhead_lens.studies.run.analysis import run_budget_of
    from overhead_lens.studies.run.missed import end_to_end
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, append_markdown, show
    from overhead_lens.terminal.progress import announcement, progress

    refuse_on_windows("advise", "; advice made there can be read here")
    classifier = default_classifier(rules)
    effort = QUICK if quick else STANDARD
    form = Format(json_, html, classifier, force=force)
    if Path(target).is_dir():
        if options != CallOptions():
            raise UsageError(f"{target} is a directory, whose capture defines the call: leave out the other options")
        if kind_of(Path(target)) == RUN:
            ignored = ("quick", "remedies", "timeout", "output", "markdown")
            refuse(context, "with a run, which is not measured again", *ignored)
            show(end_to_end(run_budget_of(Path(target), classifier)), form)
            return
        request = replace(
            request_of(read_capture(Path(target)), None, output, timeout), effort=effort, instructions=False
        )
    else:
        request = options.request(target, timeout, effort, output)
    with progress(quiet=quiet, begins=announcement(target, _QUICK_SECONDS if quick else _SECONDS)) as screen:
        path = record_advice(request, remedies, classifier, screen)
        screen.step("analyzing")
        advice = advice_of(path, classifier)
    show(advice, form)
    append_markdown(markdown, to_markdown(advice))
