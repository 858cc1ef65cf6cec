"""``overhead-lens report``: the budget of a stored capture, analyzed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    capture: Annotated[Path, typer.Argument(help="A capture directory.")],
    rules: Annotated[
        Path | None, typer.Option(help="Rules of your own (TOML), tried before the built-in ones.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the budget as JSON and nothing else.")] = False,
) -> None:
    """Print the budget of a stored capture."""
    from overhead_lens.categories import default_classifier
    from overhead_lens.cli.present import show_breakdown
    from overhead_lens.cli.store import budget_of

    show_breakdown(budget_of(capture, default_classifier(rules)).breakdown, as_json=json_)
