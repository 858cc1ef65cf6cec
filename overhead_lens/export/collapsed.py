"""Folded stacks, ``frame;frame count`` a line, as flamegraph.pl, inferno and speedscope read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from overhead_lens.export.names import readable
from overhead_lens.export.output import replacing_text
from overhead_lens.stack import Stack


def write_collapsed(path: Path, groups: Sequence[tuple[str, Sequence[Stack]]]) -> None:
    """Write stacks, each group below a root frame of its name; a semicolon in a name becomes a comma, for it separates frames.

    Args:
        path: Replaced when the file is complete; compressed where the name ends in ``.gz``.

    Raises:
        UsageError: The file cannot be written.
    """
    with replacing_text(path) as file:
        for name, stacks in groups:
            for stack in stacks:
                frames = (name, *(str(frame) for frame in stack.frames))
                file.write(f"{';'.join(_name(frame) for frame in frames)} {stack.count}\n")


def _name(text: str) -> str:
    return " ".join(readable(text).replace(";", ",").split())
