"""A sampled stack: the value that the sampler's reader yields and the classifier reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One frame of a sampled stack.

    Attributes:
        function: Python function (qualified where the sampler knows it) or native symbol; an unresolved native
            address is the empty string, so that address layout does not tell runs apart.
        location: Python file as the sampler prints it, or the native module (``libc.so.6``); empty if there is none.
    """

    function: str
    location: str
    line: int
    native: bool

    def __str__(self) -> str:
        name = self.function or "[unresolved]"
        return f"{name} ({self.location})" if self.location else name


@dataclass(frozen=True, slots=True)
class Stack:
    """A sampled stack, outermost frame first, and how often it was seen."""

    frames: tuple[StackFrame, ...]
    count: int
