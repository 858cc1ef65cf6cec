"""``overhead-lens scenarios``: what can be profiled."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer


def scenarios(
    json_: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the built-in scenarios with their variants and parameters."""
    from overhead_lens.capture.process import Worker
    from overhead_lens.cli.present import make_console
    from overhead_lens.scenario import builtin_paths

    paths = {name: str(path) for name, path in builtin_paths().items()}
    with tempfile.TemporaryDirectory() as folder, Worker("lister", Path(folder, "log"), 120.0) as worker:
        rows = worker.ask("catalog", paths=paths)["scenarios"]
    if json_:
        print(json.dumps(rows, indent=1))
        return
    from rich.text import Text

    console = make_console()
    for row in rows:
        if row.get("error"):
            console.print(Text(f"{row['name']}  cannot be loaded: {row['error']}", style="red"))
            continue
        console.print(Text(row["name"], style="bold").append(f"  {row['summary']}", style="not bold"))
        console.print(Text(f"    variants: {', '.join(row['variants'])}"))
        console.print(
            Text(f"    -p {' '.join(f'{name}={value}' for name, value in row['params'].items())}", style="dim"),
            soft_wrap=True,
        )
