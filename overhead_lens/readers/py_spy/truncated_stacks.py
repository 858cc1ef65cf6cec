"""Completes stacks that py-spy truncates while a thread reads the clock.

The clock is read in the kernel's vDSO, which py-spy cannot unwind: it sees the caller of the vDSO, but no native frame above it.
A guard in Python code that reads the clock loses the C++ frames in the middle (second column)::

    measured_loop   measured_loop
    compile_wrapper   compile_wrapper
      dynamo__custom_eval_frame
      lookup
    guard             guard
      time_perf_counter_ns
        clock_gettime     clock_gettime
                            [vdso]

The first column is a whole stack, sampled a moment earlier: it has the same Python frames and ends on the way to the clock.
A truncated stack takes the missing frames from such stacks, in proportion to their counts. Without any, the caller of the
clock stays unknown; the frames in the middle are known if all whole stacks with the same Python frames agree on them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from overhead_lens.stack import Stack, StackFrame

_VDSO = "[vdso]"

# A truncated stack keeps two native frames: the vDSO, and the function of the C library that called it. With some C libraries
# (glibc 2.41) the unwinder takes one more step, to an address that is in no module.
_LEFT = 2
_NO_MODULE = "?"

# Functions that do nothing but read the clock: CPython's Modules/timemodule.c and Python/pytime.c, libstdc++'s <chrono>.
_READER = re.compile(
    r"time_(time|monotonic|perf_counter)(_ns)?|_?PyTime_Get\w+|pymonotonic|py_get_\w*clock|std::chrono::.*::now.*"
)

UNKNOWN_CALLER = StackFrame("read of the clock, callers cut off by the vDSO", "", 0, native=True)

_Frames = tuple[StackFrame, ...]
_Chain = tuple[tuple[str, str], ...]


def completed(groups: Sequence[Sequence[Stack]]) -> list[list[Stack]]:
    """Complete the truncated stacks of each process from the whole stacks of all processes."""
    if not any(_is_truncated(stack) for group in groups for stack in group):
        return [list(group) for group in groups]
    stacks = [stack for group in groups for stack in group]
    ways, middles = _ways_to_the_clock(stacks), _middles(stacks)
    return [list(_completed(group, ways, middles)) for group in groups]


def _is_truncated(stack: Stack) -> bool:
    native = [frame for frame in stack.frames if frame.native and frame.location != _NO_MODULE]
    return stack.frames[-1].location == _VDSO and len(native) <= _LEFT


def _ways_to_the_clock(stacks: Sequence[Stack]) -> dict[_Chain, Counter[_Frames]]:
    """Count whole stacks, down to the read of the clock, by chain of Python frames."""
    truncated = [stack for stack in stacks if _is_truncated(stack)]
    whole = [stack for stack in stacks if not _is_truncated(stack)]
    clocks = {frame.function for stack in truncated for frame in stack.frames[:-1] if frame.native and frame.function}
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


def _middles(stacks: Sequence[Stack]) -> dict[_Chain, _Frames]:
    """The frames down to the innermost Python frame, by chain of Python frames, where all whole stacks agree on them."""
    middles: defaultdict[_Chain, set[_Frames]] = defaultdict(set)
    for stack in stacks:
        if not _is_truncated(stack):
            python = [at for at, frame in enumerate(stack.frames) if not frame.native]
            middles[_chain(stack.frames)].add(_without_lines(stack.frames[: python[-1] + 1] if python else ()))
    return {chain: frames for chain, (frames, *others) in middles.items() if not others}


def _as_far_as(frames: _Frames, callers: Collection[str]) -> _Frames:
    """Frames down to the innermost of ``callers``, without lines; none if a Python frame follows it."""
    for end in range(len(frames), 0, -1):
        if not frames[end - 1].native:
            break
        if frames[end - 1].function in callers:
            return _without_lines(frames[:end])
    return ()


def _completed(
    group: Iterable[Stack], ways: Mapping[_Chain, Counter[_Frames]], middles: Mapping[_Chain, _Frames]
) -> Iterator[Stack]:
    truncated: Counter[_Frames] = Counter()
    for stack in group:
        if _is_truncated(stack):
            truncated[stack.frames] += stack.count
        else:
            yield stack
    for frames, count in truncated.items():
        python = tuple(frame for frame in frames if not frame.native)
        unknown = (*middles.get(_chain(frames), python), UNKNOWN_CALLER)
        for way, part in _divided(count, ways.get(_chain(frames), Counter({unknown: 1}))):
            lines = iter(python)
            yield Stack(tuple(frame if frame.native else next(lines) for frame in way), part)


def _chain(frames: _Frames) -> _Chain:
    """Python frames of a stack, regardless of their lines."""
    return tuple((frame.function, frame.location) for frame in frames if not frame.native)


def _without_lines(frames: _Frames) -> _Frames:
    return tuple(
        frame if frame.native else StackFrame(frame.function, frame.location, 0, native=False) for frame in frames
    )


def _divided(count: int, ways: Mapping[_Frames, int]) -> Iterator[tuple[_Frames, int]]:
    """Divide ``count`` into integers in proportion to the weights; remainders go to the largest."""
    total, given, seen = sum(ways.values()), 0, 0
    for way, weight in sorted(ways.items(), key=lambda item: item[1], reverse=True):
        seen += weight
        part = -(-count * seen // total) - given
        given += part
        if part:
            yield way, part
