"""Reads py-spy's raw format: one folded stack per line, ``frame;frame;... count``, outermost frame first.

A Python frame is ``function (file:line)``. A native frame is ``symbol (module)``, or ``symbol (source.c:line)`` where the module
has debug information. An unresolved address is ``0x7f.. (module)``; the number is dropped, since addresses differ between
processes. C++ symbols hold spaces, commas and nested parentheses: a frame ends at ``)`` before ``;``.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from overhead_lens.stack import Stack, StackFrame

_FRAME = re.compile(r"^(?P<function>.*) \((?P<location>[^()]*(?:\([^()]*\)[^()]*)*)\)$", re.DOTALL)
_ADDRESS = re.compile(r"^0x[0-9a-f]+$")
_NATIVE_SOURCE = re.compile(r"\.(c|cc|cpp|cxx|h|hh|hpp|S|s|rs|f|f90|inc|cu|cuh|pyx)$")
_LIBRARY = re.compile(r"\.so(\.|$)|\.dylib$|\.dll$|\.pyd$|^\[.*\]$")


def read_folded(path: Path) -> tuple[str, ...]:
    """Lines of a gzipped file of folded stacks.

    Raises:
        ValueError: It is damaged, or cannot be read.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as source:
            return tuple(source)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ValueError(str(error)) from error


def parse_stacks(lines: Iterable[str]) -> Iterator[Stack]:
    """Parse folded lines; a line without a count or a frame is skipped."""
    for line in lines:
        folded, _, count = line.rstrip("\n").rpartition(" ")
        if not folded or not count.isdigit():
            continue
        frames = tuple(parse_frame(text) for text in split_frames(folded))
        if frames:
            yield Stack(frames, int(count))


def split_frames(folded: str) -> list[str]:
    """Split a folded stack into frames; only a semicolon behind ``)`` separates."""
    frames: list[str] = []
    for piece in folded.split(";"):
        if frames and not frames[-1].endswith(")"):
            frames[-1] += ";" + piece
        else:
            frames.append(piece)
    return frames


@lru_cache(maxsize=65_536)
def parse_frame(text: str) -> StackFrame:
    """Parse one frame as py-spy prints it."""
    match = _FRAME.match(text)
    if match is None:
        return StackFrame("" if _ADDRESS.match(text) else text, "", 0, native=True)
    function, location = match["function"], match["location"]
    path, colon, last = location.rpartition(":")
    line = int(last) if colon and last.isdigit() else 0
    if line:
        location = path
    python = location.endswith((".py", ".pyc", ")", ">"))
    native = bool(_LIBRARY.search(location)) or bool(_NATIVE_SOURCE.search(location)) or not (line or python)
    return StackFrame("" if _ADDRESS.match(function) else function, location, line, native)


def by_root(stacks: Iterable[Stack]) -> list[list[Stack]]:
    """Group stacks by outermost function, that is by sampled process, in order of appearance."""
    groups: dict[str, list[Stack]] = {}
    for stack in stacks:
        groups.setdefault(stack.frames[0].function, []).append(stack)
    return list(groups.values())


def inside(stacks: Iterable[Stack], function: str) -> list[Stack]:
    """Select the stacks that pass through a Python function, from that frame inwards.

    Frames above the measured loop (start-up, the worker's protocol) are not part of the measured call. A stack that does not
    reach the loop was sampled outside of it and is dropped.
    """
    inner = []
    for stack in stacks:
        depth = next(
            (i for i, frame in enumerate(stack.frames) if frame.function == function and not frame.native), None
        )
        if depth is not None:
            inner.append(Stack(stack.frames[depth:], stack.count))
    return inner
