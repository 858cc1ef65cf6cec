"""``overhead-lens doctor``: what each instrument needs, whether it is here, and how to get it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer


def doctor(
    json_: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Say what is missing for each instrument and how to get it."""
    from overhead_lens.capture.requirements import examine
    from overhead_lens.cli.present import make_console

    findings = examine()
    if json_:
        print(json.dumps([asdict(finding) for finding in findings], indent=1))
        return
    from rich.text import Text

    console = make_console()
    for finding in findings:
        mark, color = ("ok  ", "green") if finding.available else ("none", "yellow")
        console.print(
            Text(f"{mark} ", style=color).append(f"{finding.name:<16}", style="bold").append(finding.detail),
            soft_wrap=True,
        )
        if not finding.available:
            console.print(Text(f"     without it: {finding.without}. {finding.remedy}"), soft_wrap=True)
