"""``overhead-lens diff``: what changed between two stored captures, or between two exported traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.errors import EXIT_REGRESSION, UsageError
from overhead_lens.terminal.arguments import Rules, json_option


def diff(
    base: Annotated[Path, typer.Argument(help="Capture, or exported trace, to compare with.")],
    new: Annotated[Path, typer.Argument(help="Capture, or trace, that may be slower.")],
    force: Annotated[
        bool, typer.Option("--force", help="Compare captures of different machines, versions or sizes.")
    ] = False,
    margin: Annotated[
        float, typer.Option(help="Percent of the base's wall time that count as no difference.", min=0.0, max=100.0)
    ] = 1.0,
    rules: Rules = None,
    json_: Annotated[bool, json_option("difference")] = False,
) -> None:
    """Compare two captures; exit 1 when the new one is slower. Of two traces: what came, went or changed."""
    from overhead_lens.captures.directory import read_capture
    from overhead_lens.comparison.difference import compare_budgets, differences
    from overhead_lens.stored import budgets_of, compare_traces
    from overhead_lens.taxonomy.categories import default_classifier
    from overhead_lens.terminal.output import Format, show

    if base.is_file() and new.is_file():
        show(compare_traces(base, new, default_classifier(rules)), Format.asked(json=json_))
        return
    if base.is_file() or new.is_file():
        raise UsageError("a trace compares with a trace, a capture with a capture")
    found = differences(read_capture(base).meta, read_capture(new).meta)
    if found and not force:
        raise UsageError(f"the captures differ in {'; '.join(found)}: --force compares them all the same")
    classifier = default_classifier(rules)
    before, after = budgets_of((base, new), classifier)
    delta = compare_budgets(before, after, margin / 100)
    show(delta, Format.asked(json=json_))
    if delta.verdict == "slower":
        raise typer.Exit(EXIT_REGRESSION)
