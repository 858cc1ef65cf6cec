"""``overhead-lens report``: the budget of a stored capture, or a stored ladder or sweep, analyzed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from overhead_lens.cli.arguments import Rules, json_option


def report(
    capture: Annotated[Path, typer.Argument(help="Directory of a capture, a ladder or a sweep.")],
    rules: Rules = None,
    json_: Annotated[bool, json_option("budget")] = False,
) -> None:
    """Print the budget of a stored capture, or a stored ladder or sweep."""
    from overhead_lens.capture.directory import is_ladder, is_sweep
    from overhead_lens.categories import default_classifier
    from overhead_lens.cli.present import show_breakdown
    from overhead_lens.cli.store import budget_of

    if is_ladder(capture):
        from overhead_lens.cli.ladder import read, show

        show(read(capture), as_json=json_)
        return
    if is_sweep(capture):
        from overhead_lens.cli.sweep import read as read_sweep
        from overhead_lens.cli.sweep import show as show_sweep

        show_sweep(read_sweep(capture), as_json=json_)
        return
    show_breakdown(budget_of(capture, default_classifier(rules)).breakdown, as_json=json_)
