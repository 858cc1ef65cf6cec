"""Turns a stored capture into a request to record the same again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.model import HOT_CACHES, CaptureMeta
from overhead_lens.errors import UsageError
from overhead_lens.instruments.instructions.record import Counted
from overhead_lens.machine.request import Effort, Request
from overhead_lens.target import parse_target


def request_of(
    capture: Capture, target: str | None, output: Path | None, timeout_s: float, inputs: str | None = None
) -> Request:
    """A request with the capture's call and effort, or other ``inputs``; instructions are counted where the capture has them.

    Raises:
        UsageError: The target does not exist or cannot be measured on this machine, or the capture says too little of its call.
    """
    if sys.platform == "win32":
        raise UsageError("profiles are measured on Linux and macOS only")
    meta = capture.meta
    if meta.caches != HOT_CACHES:
        raise UsageError(
            f"{capture.path} was measured with {meta.caches}: measure again with `profile --cold`, and compare by `diff`"
        )
    if target is None and not _is_repeatable(meta, inputs):
        raise UsageError(
            f"{capture.path} is of a call from Python, whose arguments are not stored: "
            "name the function and what makes them, my.py:f --inputs my.py:make"
        )
    named = target or meta.target or f"{meta.subject.name}:{meta.subject.variant}"
    params = {name: str(value) for name, value in meta.subject.params.items()}
    counted = capture.note("instructions", Counted)
    return Request(
        target=parse_target(named, inputs or (None if target else meta.inputs)),
        params=params if meta.assigned is None else meta.assigned,
        compile_options=meta.compile_options,
        output=output,
        timeout_s=timeout_s,
        effort=_effort(meta.effort),
        instructions=counted is not None,
        counted_calls=None if counted is None else counted.calls,
    )


def _is_repeatable(meta: CaptureMeta, inputs: str | None) -> bool:
    """Whether the stored target, with the inputs that the user names, is the measured call."""
    if meta.subject.kind == "callable":
        # It was measured where it was defined: its name may be anything's elsewhere.
        return False
    unknown = meta.has_arguments is None and meta.command.startswith("overhead_lens.")
    return inputs is not None or not (meta.has_arguments or unknown)


def _effort(stored: Mapping[str, int]) -> Effort:
    """The stored effort; the default one if this version does not know it."""
    known = {field.name for field in fields(Effort)}
    return Effort(**stored) if stored.keys() <= known and all(number > 0 for number in stored.values()) else Effort()
