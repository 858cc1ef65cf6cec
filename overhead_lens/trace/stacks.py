"""Reader of py-spy's raw format: folded stacks, one per line, ``frame;frame;... count``, outermost frame first.

A Python frame is ``function (file:line)``, a native frame ``symbol (module)``, or ``symbol (source.c:line)`` where the
module has debug information. An unresolved address is ``0x7f.. (module)``; its number is dropped, since the address
layout differs in every process. Symbols of C++ hold semicolons only inside ``{lambda(...)}`` never, but spaces, commas
and parentheses of any depth: a frame ends at ``)`` before ``;``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from overhead_lens.trace.model import Stack, StackFrame

_FRAME = re.compile(r"^(?P<function>.*) \((?P<location>[^()]*(?:\([^()]*\)[^()]*)*)\)$", re.DOTALL)
_ADDRESS = re.compile(r"^0x[0-9a-f]+$")
_NATIVE_SOURCE = re.compile(r"\.(c|cc|cpp|cxx|h|hh|hpp|S|s|rs|f|f90|inc|cu|cuh|pyx)$")
_LIBRARY = re.compile(r"\.so(\.|$)|\.dylib$|\.dll$|\.pyd$|^\[.*\]$")


def parse_stacks(lines: Iterable[str]) -> Iterator[Stack]:
    """Stacks of folded lines; a line without a count or without a frame is skipped."""
    for line in lines:
        folded, _, count = line.rstrip("\n").rpartition(" ")
        if not folded or not count.isdigit():
            continue
        frames = tuple(parse_frame(text) for text in split_frames(folded))
        if frames:
            yield Stack(frames, int(count))


def split_frames(folded: str) -> list[str]:
    """The frames of one folded stack; a semicolon separates frames only after a closing parenthesis."""
    frames: list[str] = []
    for piece in folded.split(";"):
        if frames and not frames[-1].endswith(")"):
            frames[-1] += ";" + piece
        else:
            frames.append(piece)
    return frames


def parse_frame(text: str) -> StackFrame:
    """One frame as py-spy prints it."""
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
    """The stacks in groups of the same outermost function, in order of appearance: one group per sampled process."""
    groups: dict[str, list[Stack]] = {}
    for stack in stacks:
        groups.setdefault(stack.frames[0].function, []).append(stack)
    return list(groups.values())


def inside(stacks: Iterable[Stack], function: str) -> list[Stack]:
    """The stacks that pass through Python function ``function``, cut to what it calls (itself first).

    Everything above the measured loop (start-up, the worker's protocol) is not part of the measured call; a stack that
    does not reach it was taken outside of the window and is left out.
    """
    found = []
    for stack in stacks:
        depth = next(
            (i for i, frame in enumerate(stack.frames) if frame.function == function and not frame.native), None
        )
        if depth is not None:
            found.append(Stack(stack.frames[depth:], stack.count))
    return found
