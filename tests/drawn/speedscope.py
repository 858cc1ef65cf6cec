"""Drawing what py-spy writes: speedscope files of folded stacks, one sequence a thread."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from overhead_lens.readers.py_spy.stacks import parse_frame, split_frames


def speedscope(*sequences: Sequence[str]) -> str:
    """A file with these stacks, ``frame;frame`` each; equal frames are stored once, as py-spy stores them."""
    frames: dict[str, int] = {}
    profiles = []
    for sequence in sequences:
        samples = [
            [frames.setdefault(text, len(frames)) for text in split_frames(stack)] if stack else []
            for stack in sequence
        ]
        profiles.append({"type": "sampled", "name": "Thread 0", "unit": "none", "samples": samples})
    return json.dumps({"$schema": "", "profiles": profiles, "shared": {"frames": [_frame(text) for text in frames]}})


def _frame(text: str) -> dict[str, Any]:
    name = text.rpartition(" (")[0]
    if not name or text.startswith("thread "):
        return {"name": text}
    frame = parse_frame(text)
    return {"name": name, "file": frame.location, **({"line": frame.line} if frame.line else {})}


def sequence(folded: str) -> tuple[str, ...]:
    """One thread's stacks from lines ``frame;frame count``, equal ones behind each other."""
    lines = (line.rpartition(" ") for line in folded.splitlines())
    return tuple(stack for stack, _, count in lines for _ in range(int(count)))
