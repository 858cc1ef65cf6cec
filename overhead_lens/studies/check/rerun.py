"""A stored capture as a request to record the same again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from overhead_lens.captures.directory import Capture
from overhead_lens.errors import UsageError
from overhead_lens.instruments.instructions.evidence import Counted
from overhead_lens.machine.request import Effort, Request
from overhead_lens.target import parse_target


def request_of(
    capture: Capture, target: str | None, output: Path | None, timeout_s: float, inputs: str | None = None
) -> Request:
    """Scenario, variant, parameters, compile options and effort of a capture; instructions where it has them.

    Args:
        capture: What was recorded.
        target: What to record in place of what the capture says.
        output: Directory for the new capture; None for one of its own.
        timeout_s: Limit for one step of one worker.
        inputs: What makes its arguments, in place of what the capture says.

    Raises:
        UsageError: What the capture recorded is not here, or cannot be measured here.
    """
    if sys.platform == "win32":
        raise UsageError("profiles are measured on Linux and macOS only")
    meta = capture.meta
    named = target or meta.target or f"{meta.subject.name}:{meta.subject.variant}"
    found = parse_target(named, inputs or (None if target else meta.inputs))
    known = {name: str(value) for name, value in meta.subject.params.items()}
    counted = capture.note("instructions", Counted)
    return Request(
        target=found,
        params=known if meta.assigned is None else meta.assigned,
        compile_options=meta.compile_options,
        output=output,
        parent=Path("traces"),
        timeout_s=timeout_s,
        effort=_effort(meta.effort),
        instructions=counted is not None,
        counted_calls=None if counted is None else counted.calls,
        command=("overhead-lens", *sys.argv[1:]),
    )


def _effort(stored: Mapping[str, int]) -> Effort:
    """The stored effort if it is one; that of a capture of before is the usual."""
    known = {each.name for each in fields(Effort)}
    return Effort(**stored) if stored.keys() <= known and all(number > 0 for number in stored.values()) else Effort()
