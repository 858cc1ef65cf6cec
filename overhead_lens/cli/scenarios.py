"""``overhead-lens scenarios``: what can be profiled."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from overhead_lens.terminal.command import option

if TYPE_CHECKING:
    from rich.console import Console


def scenarios(json_: Annotated[bool, option("--json", "list")] = False) -> None:
    """List the built-in scenarios with their variants and parameters."""
    from overhead_lens.machine.operations import CATALOG
    from overhead_lens.machine.process import Worker
    from overhead_lens.target import builtin_paths
    from overhead_lens.terminal.output import Format, show_rows

    paths = {name: str(path) for name, path in builtin_paths().items()}
    with tempfile.TemporaryDirectory() as folder, Worker("lister", Path(folder, "log"), 120.0) as worker:
        rows = worker.ask(CATALOG, paths=paths).scenarios
    show_rows(rows, Format(json_), lambda console: _print(console, rows))


def _print(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    from rich.text import Text

    for row in rows:
        if row.get("error"):
            console.print(Text(f"{row['name']}  cannot be loaded: {row['error']}", style="red"))
            continue
        console.print(Text(row["name"], style="bold").append(f"  {row['summary']}", style="not bold"))
        console.print(Text(f"    variants: {', '.join(row['variants'])}"))
        params = " ".join(f"{name}={value}" for name, value in row["params"].items())
        console.print(Text(f"    -p {params}", style="dim"), soft_wrap=True)
