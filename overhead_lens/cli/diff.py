"""``overhead-lens diff``: what changed between two stored captures, or between two exported traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import EXIT_REGRESSION, MismatchError, UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import argument, option, refuse
from overhead_lens.terminal.completion import complete_capture_or_trace


def diff(
    context: typer.Context,
    base: Annotated[Path, argument("BASE", "Capture or exported trace to compare with.", complete_capture_or_trace)],
    new: Annotated[Path, argument("NEW", "Capture or trace that may be slower.", complete_capture_or_trace)],
    margin: given.Margin = "1%",
    rules: given.Rules = None,
    allow_mismatch: given.AllowMismatch = False,
    html: given.Html = None,
    json_: Annotated[bool, option("--json", "difference")] = False,
    force: given.Force = False,
) -> None:
    """Compare two captures or runs and exit 1 if the new one is slower. Also show what changed between traces or processes."""
    from overhead_lens.directories import checks_context, compare_directories
    from overhead_lens.taxonomy.classifier import default_classifier

    margin_share = given.parse_share("--margin", margin, bare=0.01)
    classifier = default_classifier(rules)
    missing = [path for path in (base, new) if not path.exists()]
    if len(missing) == 1:
        raise UsageError(f"{missing[0]} does not exist")
    if base.is_file() != new.is_file():
        raise UsageError("a trace compares with a trace, a capture with a capture")
    if base.is_file():
        from overhead_lens.stored import compare_traces

        refuse(context, "with traces, whose times are not judged", "margin", "allow_mismatch")
        delta = compare_traces(base, new, classifier)
    else:
        checks = checks_context(base)
        if not checks:
            refuse(context, "with runs and watched processes, whose machines are not compared", "allow_mismatch")
        allowed = checks and given.allows_mismatch(force=force, allow_mismatch=allow_mismatch, files=(html,))
        try:
            delta = compare_directories(base, new, classifier, margin_share, force=allowed)
        except MismatchError as error:
            raise UsageError(f"{error}: use --allow-mismatch to compare them anyway") from error
    from overhead_lens.terminal.output import Format, show

    show(delta, Format(json_, html, classifier, force=force))
    # Traces and watched processes say what changed, and not whether it became slower.
    if getattr(delta, "verdict", None) == "slower":
        raise typer.Exit(EXIT_REGRESSION)
