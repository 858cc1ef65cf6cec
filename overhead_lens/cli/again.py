"""A stored capture as a request to record the same again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from overhead_lens.capture.record import Effort, Request
from overhead_lens.errors import UsageError
from overhead_lens.scenario import parse_target


def request_of(meta: Mapping[str, Any], target: str | None, output: Path | None, timeout_s: float) -> Request:
    """Scenario, variant, parameters, compile options and effort of a capture; instructions where it has them.

    Args:
        meta: Its ``meta.json``.
        target: What to record in place of what the capture says.
        output: Directory for the new capture; None for one of its own.
        timeout_s: Limit for one step of one worker.

    Raises:
        UsageError: The capture does not say what it recorded, or that is not here.
    """
    if sys.platform == "win32":
        raise UsageError("profiles are measured on Linux and macOS only")
    named = target or meta.get("target") or f"{meta['scenario']}:{meta['variant']}"
    found = parse_target(named)
    known = {name: str(value) for name, value in meta["params"].items()}
    given = meta.get("assigned", known)
    if not isinstance(given, dict):
        raise UsageError("the baseline does not say which parameters it was recorded with")
    counted = meta.get("instructions") or {}
    return Request(
        path=found.path,
        variant=found.variant,
        params=given,
        compile_options=meta.get("compile_options") if meta["compile"] else None,
        output=output,
        parent=Path("traces"),
        timeout_s=timeout_s,
        target=named,
        effort=_effort(meta.get("effort")),
        instructions=bool(counted),
        counted_calls=counted.get("calls"),
        command=("overhead-lens", *sys.argv[1:]),
    )


def _effort(stored: Any) -> Effort:
    """The stored effort if it is one; that of a capture of before, or a damaged one, is the usual."""
    known = {each.name for each in fields(Effort)}
    if isinstance(stored, dict) and stored.keys() <= known and all(type(n) is int and n > 0 for n in stored.values()):
        return Effort(**stored)
    return Effort()
