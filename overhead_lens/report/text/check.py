"""The terminal report of a check: the difference, then its limits."""

from __future__ import annotations

from rich.console import Console

from overhead_lens.report.text.delta import print_delta, print_instruction_delta
from overhead_lens.studies.check.limits import BROKEN
from overhead_lens.studies.check.outcome import Outcome, TimeOutcome


def print_outcome(console: Console, outcome: Outcome) -> None:
    """Print what changed, and a line for each limit."""
    if isinstance(outcome, TimeOutcome):
        print_delta(console, outcome.delta)
    else:
        print_instruction_delta(console, outcome.delta)
    for finding in outcome.findings:
        console.print(str(finding), style="red" if finding.state == BROKEN else "")
