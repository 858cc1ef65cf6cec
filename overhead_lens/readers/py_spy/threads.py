"""Reads py-spy's raw format with its threads: ``record --threads``, with or without ``--subprocesses``.

A line begins with the processes from the watched one down to the sampled one, if children are watched, and with the thread::

    process 10:"python train.py";process 12:"python train.py";thread (12): MainThread;main (train.py:3) 7

Command lines and names of threads are whatever their program chose. A command line ends where a process or a thread follows. The
name of a thread ends at the first semicolon: what is behind it would be taken for the outermost frame, and the thread is known by
its number all the same. A thread whose number the system does not tell has the interpreter's, in hexadecimal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from overhead_lens.readers.py_spy.stacks import parse_frame, split_frames
from overhead_lens.stack import Stack, StackFrame

_PROCESS = re.compile(r'process (?P<pid>\d+):".*?";(?=process \d+:"|thread \()', re.DOTALL)
_THREAD = re.compile(r"thread \((?P<number>\d+|0x[0-9A-Fa-f]+)\)(?:: (?P<name>[^;]*))?(?:;|$)", re.IGNORECASE)
_NO_FRAMES = StackFrame("[no frames]", "", 0, native=True)


@dataclass(frozen=True, slots=True)
class SampledThread:
    """A thread and its stacks.

    Attributes:
        name: As its program calls it, ``MainThread``; empty if it has none.
        blocks: Stacks without the frames that name process and thread, in blocks of consecutive ones; a single block where the
            order is not known.
    """

    name: str
    thread: int
    process: int
    blocks: tuple[tuple[Stack, ...], ...]

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """All stacks."""
        return tuple(stack for block in self.blocks for stack in block)

    @property
    def samples(self) -> int:
        """Number of samples of the thread."""
        return sum(stack.count for stack in self.stacks)


@dataclass(frozen=True, slots=True)
class ThreadHead:
    """The head of a folded stack: the thread's name and number, and its process (0 for the watched process)."""

    name: str
    thread: int
    process: int


def thread_head(folded: str) -> ThreadHead:
    """The thread that a folded stack begins with; without a name and numbers where it names none."""
    return _divided(folded)[0]


def _divided(folded: str) -> tuple[ThreadHead, str | None]:
    """The head of a folded stack, and the frames behind it; None for a stack without a thread."""
    process, at = 0, 0
    while match := _PROCESS.match(folded, at):
        process, at = int(match["pid"]), match.end()
    thread = _THREAD.match(folded, at)
    if thread is None:
        return ThreadHead("", 0, process), None
    return ThreadHead(thread["name"] or "", int(thread["number"], 0), process), folded[thread.end() :]


def read_threads(folded: Iterable[str], pid: int) -> list[SampledThread]:
    """Threads of the watched process ``pid`` and of its children, in order of appearance; a line without a thread is skipped."""
    names: dict[tuple[int, int], str] = {}
    stacks: dict[tuple[int, int], list[Stack]] = {}
    for line in folded:
        text, _, count = line.rstrip("\n").rpartition(" ")
        head, below = _divided(text)
        if below is None or not count.isdigit():
            continue
        key = (head.process or pid, head.thread)
        names.setdefault(key, head.name)
        frames = tuple(parse_frame(frame) for frame in split_frames(below) if frame)
        stacks.setdefault(key, []).append(Stack(frames or (_NO_FRAMES,), int(count)))
    return [SampledThread(name, key[1], key[0], (tuple(stacks[key]),)) for key, name in names.items()]


def joined(threads: Iterable[SampledThread]) -> list[SampledThread]:
    """Threads that were read block by block, each once with its blocks in their order."""
    by_thread: dict[tuple[int, int], SampledThread] = {}
    for thread in threads:
        key = (thread.process, thread.thread)
        before = by_thread[key].blocks if key in by_thread else ()
        by_thread[key] = replace(thread, blocks=(*before, *thread.blocks))
    return list(by_thread.values())
