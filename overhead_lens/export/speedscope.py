"""Sampled stacks for speedscope (https://www.speedscope.app/file-format-schema.json).

Each distinct stack becomes one sample whose weight is its share of the wall time of one call; the weights are integer
nanoseconds and sum to it exactly. Speedscope's left-heavy view shows where the call's time goes; its time order means
nothing, since the sampler keeps counts only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from overhead_lens import __version__
from overhead_lens.budget.model import Breakdown
from overhead_lens.errors import InvariantError
from overhead_lens.export.names import readable
from overhead_lens.export.output import replacing_text
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.units import round_to_sum

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(path: Path, breakdown: Breakdown, stacks: Sequence[Stack]) -> None:
    """Write the stacks; compressed where the name ends in ``.gz``.

    Args:
        path: Replaced when the file is complete.
        breakdown: Its wall time is what the weights sum to.
        stacks: Cut to the measured loop; at least one.

    Raises:
        UsageError: The file cannot be written.
    """
    if not stacks:
        raise InvariantError("speedscope needs at least one stack")
    with replacing_text(path) as file:
        json.dump(_document(breakdown, stacks), file, separators=(",", ":"))


def _document(breakdown: Breakdown, stacks: Sequence[Stack]) -> dict[str, Any]:
    frames: dict[StackFrame, int] = {}
    samples = [[frames.setdefault(frame, len(frames)) for frame in stack.frames] for stack in stacks]
    total, wall_ns = sum(stack.count for stack in stacks), breakdown.wall.ns
    title = readable(
        f"{breakdown.subject.name}:{breakdown.subject.variant}, {'compiled' if breakdown.subject.compile else 'eager'}"
    )
    profile = {
        "type": "sampled",
        "name": title,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": wall_ns,
        "samples": samples,
        "weights": round_to_sum([stack.count * wall_ns / total for stack in stacks], wall_ns),
    }
    return {
        "$schema": _SCHEMA,
        "exporter": f"overhead-lens {__version__}",
        "name": title,
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(frame) for frame in frames]},
        "profiles": [profile],
    }


def _frame(frame: StackFrame) -> dict[str, Any]:
    described: dict[str, Any] = {"name": readable(frame.function or "[unresolved]"), "file": readable(frame.location)}
    return {**described, "line": frame.line} if frame.line else described
