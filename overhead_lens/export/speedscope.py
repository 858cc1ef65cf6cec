"""Sampled stacks for speedscope (https://www.speedscope.app/file-format-schema.json), and as folded stacks.

Each distinct stack becomes one sample whose weight is its share of the wall time, of one call or of a watched thread. The weights
are integer nanoseconds and sum to it exactly. Speedscope's left-heavy view shows where the time goes; the order in time
means nothing, since the sampler keeps counts only. Writers raise ``UsageError`` where the file cannot be written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overhead_lens import __version__
from overhead_lens.errors import require
from overhead_lens.export.names import readable
from overhead_lens.export.output import replacing_text
from overhead_lens.stack import Stack, StackFrame
from overhead_lens.units import round_to_sum


@dataclass(frozen=True, slots=True)
class Profile:
    """Stacks, at least one, and the time that they divide."""

    name: str
    wall_ns: int
    stacks: Sequence[Stack]

    def __post_init__(self) -> None:
        require(bool(self.stacks), "speedscope needs at least one stack")


def write_profiles(path: Path, title: str, profiles: Sequence[Profile]) -> None:
    """Write profiles into one file, where speedscope offers a choice of them; compressed where its name ends in ``.gz``."""
    frames: dict[StackFrame, int] = {}
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"overhead-lens {__version__}",
        "name": readable(title),
        "activeProfileIndex": 0,
        "profiles": [_sampled(profile, frames) for profile in profiles],
        "shared": {"frames": [_frame(frame) for frame in frames]},
    }
    with replacing_text(path) as file:
        json.dump(document, file, separators=(",", ":"))


def _sampled(profile: Profile, frames: dict[StackFrame, int]) -> dict[str, Any]:
    """A profile whose frames are numbers in ``frames``, to which new ones are added."""
    total, wall_ns = sum(stack.count for stack in profile.stacks), profile.wall_ns
    return {
        "type": "sampled",
        "name": readable(profile.name),
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": wall_ns,
        "samples": [[frames.setdefault(frame, len(frames)) for frame in stack.frames] for stack in profile.stacks],
        "weights": round_to_sum([stack.count * wall_ns / total for stack in profile.stacks], wall_ns),
    }


def _frame(frame: StackFrame) -> dict[str, Any]:
    described: dict[str, Any] = {"name": readable(frame.function or "[unresolved]"), "file": readable(frame.location)}
    return {**described, "line": frame.line} if frame.line else described


def write_collapsed(path: Path, _: str, profiles: Sequence[Profile]) -> None:
    """Write stacks below a root frame with their profile's name; semicolons, which separate frames, become commas in names."""
    with replacing_text(path) as file:
        for profile in profiles:
            for stack in profile.stacks:
                frames = (profile.name, *(str(frame) for frame in stack.frames))
                file.write(f"{';'.join(_name(frame) for frame in frames)} {stack.count}\n")


Write = Callable[[Path, str, Sequence[Profile]], None]
"""Writes profiles with a title into a file, as these two do."""


def _name(text: str) -> str:
    return " ".join(readable(text).replace(";", ",").split())
