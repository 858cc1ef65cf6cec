"""What the readers yield: sampled stacks as tuples of frames, trace events as one pandas frame.

Event frame columns, one row per complete event, in file order:

=============  ========  =====================================================================
``name``       object    event name
``cat``        object    Kineto category (``cpu_op``, ``user_annotation``, ``python_function``, ...)
``pid, tid``   object    process and thread as the file names them
``start_ns``   int64     start, since the file's own zero
``dur_ns``     int64     duration, >= 0
``correlation`` int64    links a launch to its device events; -1 where absent
=============  ========  =====================================================================
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One frame of a sampled stack.

    Attributes:
        function: Python function (qualified where the sampler knows it) or native symbol; an unresolved native
            address is the empty string, so that address layout does not tell runs apart.
        location: Python file as the sampler prints it, or the native module (``libc.so.6``).
        line: Source line, 0 where not known.
        native: Whether this is a native frame.
    """

    function: str
    location: str
    line: int
    native: bool

    def __str__(self) -> str:
        return f"{self.function or '[unresolved]'} ({self.location})"


@dataclass(frozen=True, slots=True)
class Stack:
    """A sampled stack, outermost frame first, and how often it was seen."""

    frames: tuple[StackFrame, ...]
    count: int
