"""Reads the instruction counts of a capture, ``callgrind.out.gz``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta, Struct

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import CALLGRIND
from overhead_lens.readers.callgrind import CallGraph, read_callgrind


class Counted(Struct, frozen=True):
    """The outcome of counting: calls in the window, or the reason why nothing was counted."""

    calls: Annotated[int, Meta(gt=0)]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Instructions:
    """Callgrind's counts (None without them), and how counting went."""

    graph: CallGraph | None
    about: Counted


def read_instructions(capture: Capture) -> Instructions | None:
    """The counts; None if none were requested."""
    about = capture.note("instructions", Counted)
    if about is None:
        return None
    path = capture.existing(CALLGRIND)
    return Instructions(None if path is None else read_callgrind(path), about)
