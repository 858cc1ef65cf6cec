"""``overhead-lens doctor``: what each instrument needs, whether it is here, and how to get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from overhead_lens.terminal.command import option

if TYPE_CHECKING:
    from rich.console import Console

    from overhead_lens.recorder.requirements import Requirement


def doctor(json_: Annotated[bool, option("--json", "list")] = False) -> None:
    """Show what each instrument still needs, and how to get it."""
    from overhead_lens.recorder.requirements import examine
    from overhead_lens.terminal.output import Format, show_rows

    findings = examine()
    rows = [asdict(finding) for finding in findings]
    show_rows(rows, Format(json_), lambda console: _print(console, findings))


def _print(console: Console, findings: Sequence[Requirement]) -> None:
    from rich.text import Text

    for finding in findings:
        mark, color = ("ok  ", "green") if finding.available else ("none", "yellow")
        line = Text(f"{mark} ", style=color).append(f"{finding.name:<16}", style="bold").append(finding.detail)
        console.print(line, soft_wrap=True)
        if not finding.available:
            console.print(Text(f"     without it: {finding.without}. {finding.remedy}"), soft_wrap=True)
