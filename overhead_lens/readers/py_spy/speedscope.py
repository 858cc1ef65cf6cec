"""Reads py-spy's speedscope format: the stacks of each thread in the order in which they were taken.

py-spy's raw format sums equal stacks up, so that nobody can say when one was taken. The order tells the time: stacks between two
that are recognized were taken between the two moments. Frames are printed as the raw format prints them (``stacks.py``).
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from overhead_lens.readers.py_spy.paths import shortened


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
    frames = [str(frame) for frame in file.shared.frames]
    folded: dict[tuple[int, ...], str] = {}

    def text(sample: list[int]) -> str:
        key = tuple(sample)
        if key not in folded:
            folded[key] = ";".join(frames[index] for index in sample)
        return folded[key]

    try:
        return tuple(tuple(map(text, profile.samples)) for profile in file.profiles)
    except IndexError:
        raise ValueError("not a speedscope file: a stack names a frame that is not there") from None
