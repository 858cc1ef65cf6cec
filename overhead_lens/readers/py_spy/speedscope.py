"""Reads py-spy's speedscope format: the stacks of each thread in the order in which they were taken.

py-spy's raw format sums equal stacks up, so that nobody can say when one was taken. The order tells the time: stacks between two
that are recognized were taken between the two moments. Frames are printed as the raw format prints them (``stacks.py``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

import msgspec
from msgspec import Struct

from overhead_lens.readers.py_spy.futexes import waits
from overhead_lens.readers.py_spy.paths import shortened

_LINE_BREAKS = re.compile(r"[\r\n]+")


class _Frame(Struct, frozen=True):
    name: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        file = shortened(self.file)
        if self.line:
            return f"{self.name} ({file}:{self.line})"
        return f"{self.name} ({file})" if file else self.name


class _Shared(Struct, frozen=True):
    frames: list[_Frame]


class _Profile(Struct, frozen=True):
    samples: list[list[int]]


class _File(Struct, frozen=True):
    profiles: list[_Profile]
    shared: _Shared


def read_sequences(content: bytes) -> tuple[tuple[str, ...], ...]:
    """The folded stacks of each thread, ``frame;frame``, outermost first, one a sample.

    Raises:
        ValueError: The content is not a speedscope file with sampled profiles.
    """
    try:
        file = msgspec.json.decode(content, type=_File)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a speedscope file: {error}") from error
    # A command line or the name of a thread may hold line breaks, a folded stack is a line.
    frames = [_LINE_BREAKS.sub(" ", str(frame)) for frame in file.shared.frames]
    folded: dict[tuple[int, ...], str] = {}

    def text(sample: list[int]) -> str:
        key = tuple(sample)
        if key not in folded:
            names = [frames[index] for index in sample]
            if _waits([file.shared.frames[index] for index in sample]):
                names[-1] = names[-1].replace(file.shared.frames[sample[-1]].name, "futex", 1)
            folded[key] = ";".join(names)
        return folded[key]

    try:
        return tuple(tuple(map(text, profile.samples)) for profile in file.profiles)
    except IndexError:
        raise ValueError("not a speedscope file: a stack names a frame that is not there") from None


def _waits(stack: Sequence[_Frame]) -> bool:
    """Whether a stack ends in futex(2), by functions of the C library that have no names."""
    leaf = stack[-1] if stack else None
    if leaf is None or not leaf.name.startswith("0x"):
        return False
    unnamed = takewhile(lambda frame: frame.file == leaf.file and frame.name.startswith("0x"), reversed(stack))
    return waits(leaf.file, [int(frame.name, 16) for frame in unnamed][::-1])
