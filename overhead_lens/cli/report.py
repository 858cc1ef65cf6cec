"""``overhead-lens report``: the budget of a stored capture, or a stored ladder or sweep, analyzed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.terminal.arguments import Rules, json_option


def report(
    capture: Annotated[Path, typer.Argument(help="Directory of a capture, a ladder or a sweep.")],
    rules: Rules = None,
    json_: Annotated[bool, json_option("budget")] = False,
) -> None:
    """Print the budget of a stored capture, or a stored ladder or sweep."""
    from overhead_lens.captures.directory import schema_of
    from overhead_lens.stored import budget_of
    from overhead_lens.studies.ladder.analysis import ladder_of
    from overhead_lens.studies.ladder.stored import LADDER
    from overhead_lens.studies.sweep.analysis import sweep_of
    from overhead_lens.studies.sweep.stored import SWEEP
    from overhead_lens.taxonomy.categories import default_classifier
    from overhead_lens.terminal.output import Format, show

    form, schema = Format.asked(json=json_), schema_of(capture)
    if LADDER.is_of(schema):
        show(ladder_of(capture), form)
    elif SWEEP.is_of(schema):
        show(sweep_of(capture), form)
    else:
        show(budget_of(capture, default_classifier(rules)).breakdown, form)
