"""Stacks of a thread that reads the clock: the sampler loses its callers in the vDSO, and other stacks tell them.

The kernel's vDSO is no file that py-spy could read, so it gets no further than to whoever called it. Of a guard in Python code
that reads the clock a stack is left without the C++ frames in the middle (here the second column)::

    measured_loop   measured_loop
    compile_wrapper   compile_wrapper
      dynamo__custom_eval_frame
      lookup
    guard             guard
      time_perf_counter_ns
        clock_gettime     clock_gettime
                            [vdso]

The first was taken a moment earlier: it is whole, has the same Python frames and ends on the way to the clock. What was cut off
is taken from such stacks, in proportion to how often they were seen. Where there is none, what called the clock is not known.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from overhead_lens.stack import Stack, StackFrame

_VDSO = "[vdso]"

# The leaf, and the function of the C library that called it.
_LEFT = 2

# What reads the clock and calls nothing else: CPython's Modules/timemodule.c and Python/pytime.c, libstdc++'s <chrono>.
_READER = re.compile(
    r"time_(time|monotonic|perf_counter)(_ns)?|_?PyTime_Get\w+|pymonotonic|py_get_\w*clock|std::chrono::.*::now.*"
)

UNKNOWN_CALLER = StackFrame("read of the clock, callers cut off by the vDSO", "", 0, native=True)

_Frames = tuple[StackFrame, ...]
_Chain = tuple[tuple[str, str], ...]


def mended(groups: Sequence[Sequence[Stack]]) -> list[list[Stack]]:
    """The stacks of each process, those that were cut off completed from the whole ones of all processes."""
    if not any(_is_cut(stack) for group in groups for stack in group):
        return [list(group) for group in groups]
    ways = _ways_to_the_clock([stack for group in groups for stack in group])
    return [list(_mended(group, ways)) for group in groups]


def _is_cut(stack: Stack) -> bool:
    return stack.frames[-1].location == _VDSO and sum(frame.native for frame in stack.frames) <= _LEFT


def _ways_to_the_clock(stacks: Sequence[Stack]) -> dict[_Chain, Counter[_Frames]]:
    """Per chain of Python frames the whole stacks as far as to where the clock is read, and how often they were seen."""
    cut = [stack for stack in stacks if _is_cut(stack)]
    whole = [stack for stack in stacks if not _is_cut(stack)]
    clocks = {frame.function for stack in cut for frame in stack.frames[:-1] if frame.native and frame.function}
    callers = {
        caller.function
        for stack in whole
        for caller, frame in pairwise(stack.frames)
        if caller.native and caller.function not in clocks and frame.native and frame.function in clocks
    } | {
        frame.function
        for stack in whole
        for frame in stack.frames
        if frame.native and _READER.fullmatch(frame.function)
    }
    ways: defaultdict[_Chain, Counter[_Frames]] = defaultdict(Counter)
    for stack in whole:
        way = _as_far_as(stack.frames, callers)
        if way:
            ways[_chain(way)][way] += stack.count
    return ways


def _as_far_as(frames: _Frames, callers: Collection[str]) -> _Frames:
    """The frames down to the innermost of ``callers``, if no Python frame follows it (without lines); none if there is none."""
    for end in range(len(frames), 0, -1):
        if not frames[end - 1].native:
            break
        if frames[end - 1].function in callers:
            return _without_lines(frames[:end])
    return ()


def _mended(group: Iterable[Stack], ways: Mapping[_Chain, Counter[_Frames]]) -> Iterator[Stack]:
    cut: Counter[_Frames] = Counter()
    for stack in group:
        if _is_cut(stack):
            cut[stack.frames] += stack.count
        else:
            yield stack
    for frames, count in cut.items():
        python = [frame for frame in frames if not frame.native]
        known = ways.get(_chain(frames), Counter())
        for way, part in _divided(count, known):
            lines = iter(python)
            yield Stack(tuple(frame if frame.native else next(lines) for frame in way), part)
        if not known:
            yield Stack((*python, UNKNOWN_CALLER), count)


def _chain(frames: _Frames) -> _Chain:
    """The Python frames of a stack, whatever line each of them was at."""
    return tuple((frame.function, frame.location) for frame in frames if not frame.native)


def _without_lines(frames: _Frames) -> _Frames:
    return tuple(
        frame if frame.native else StackFrame(frame.function, frame.location, 0, native=False) for frame in frames
    )


def _divided(count: int, ways: Mapping[_Frames, int]) -> Iterator[tuple[_Frames, int]]:
    """``count`` in whole parts, in proportion to how often each way was seen; the frequent ones are given what is left over."""
    total, given, seen = sum(ways.values()), 0, 0
    for way, weight in sorted(ways.items(), key=lambda each: each[1], reverse=True):
        seen += weight
        part = -(-count * seen // total) - given
        given += part
        if part:
            yield way, part
