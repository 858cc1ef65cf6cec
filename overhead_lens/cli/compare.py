"""``overhead-lens compare``: measure two things in turns and say which is slower, by how much and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overhead_lens.errors import EXIT_REGRESSION, UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.call import SIDES, CallOptions, by_side, parse_side, takes_call_options
from overhead_lens.terminal.command import argument, option, refuse_on_windows
from overhead_lens.terminal.completion import complete_target

if TYPE_CHECKING:
    from overhead_lens.machine.request import Request

# Of a small call on two cores.
_SECONDS, _QUICK_SECONDS = 90, 45


@takes_call_options
def compare(
    base: Annotated[
        str, argument("BASE", 'A target with its own options, in quotes: "add1 -p size=3".', complete_target)
    ],
    new: Annotated[str, argument("NEW", 'The target that may be slower: "add1 --compile -p size=3".', complete_target)],
    options: CallOptions,
    python: Annotated[list[str] | None, option("--python SIDE=PATH")] = None,
    rev: Annotated[list[str] | None, option("--rev SIDE=REV")] = None,
    quick: given.Quick = False,
    rounds: Annotated[int | None, option("--rounds N", callback=given.between(3, 10_000))] = None,
    timeout: given.Timeout = given.TIMEOUT_S,
    margin: given.Margin = "1%",
    rules: given.Rules = None,
    output: Annotated[Path | None, option("-o --output DIR", "two captures")] = None,
    html: given.Html = None,
    markdown: given.Markdown = None,
    json_: Annotated[bool, option("--json", "difference")] = False,
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Measure two calls in turns and exit 1 if the second one is slower."""
    from overhead_lens.api import measure_pair
    from overhead_lens.report.forms import to_markdown
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, append_markdown, show_drawn
    from overhead_lens.terminal.progress import announcement, progress

    refuse_on_windows("compare", "; captures made there can be compared here by diff")
    if quick and rounds is not None:
        raise UsageError("--quick and --rounds do not go together")
    margin_share = given.parse_share("--margin", margin, bare=0.01)
    classifier = default_classifier(rules)
    with ExitStack() as stack:
        requests = _requests(stack, (base, new), options, python or [], rev or [], rounds, timeout, quick=quick)
        seconds = None if rounds else _QUICK_SECONDS if quick else _SECONDS
        begins = announcement(f"{base} and {new} in turns", seconds)
        listener = stack.enter_context(progress(quiet=quiet, begins=begins))
        compared = measure_pair(requests, output, classifier, margin_share, listener)
    append_markdown(markdown, to_markdown(compared.delta))
    form = Format(json_, html, classifier, force=force)
    show_drawn(compared.delta, form, lambda: compared.draw(classifier), "comparison")
    if compared.delta.verdict == "slower":
        raise typer.Exit(EXIT_REGRESSION)


def _requests(
    stack: ExitStack,
    texts: tuple[str, str],
    options: CallOptions,
    python: Sequence[str],
    rev: Sequence[str],
    rounds: int | None,
    timeout_s: float,
    *,
    quick: bool,
) -> tuple[Request, Request]:
    """The requests for both sides; a revision stays checked out while ``stack`` is open."""
    from overhead_lens.machine.interpreter import find_interpreter
    from overhead_lens.machine.revision import checked_out
    from overhead_lens.recorder.paired import paired_effort

    sides = [(target, own.over(options)) for target, own in map(parse_side, texts)]
    effort = paired_effort(compiles=any(call.compile_options is not None for _, call in sides))
    processes = rounds or (effort.processes // 2 if quick else effort.processes)
    interpreters = {name: find_interpreter(path) for name, path in by_side("--python", python).items()}
    revisions = by_side("--rev", rev)
    requests = []
    for name, (target, call) in zip(SIDES, sides, strict=True):
        request = call.request(target, timeout_s, replace(effort, processes=processes))
        if name in revisions:
            request = replace(request, target=stack.enter_context(checked_out(request.target, revisions[name])))
        requests.append(replace(request, python=interpreters.get(name, sys.executable)))
    base, new = requests
    return base, new
