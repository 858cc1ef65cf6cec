"""Names the thread that holds the GIL while others wait for it (pure).

A sampler looks at all threads at once. Where a thread waits for the GIL and a single other thread of its process runs Python, the
other one holds it. Its name becomes the innermost frame of the waiting thread's stack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.readers.py_spy.threads import thread_head
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.names import gil_held_by
from overhead_lens.taxonomy.rules import Attribution

_WAITS = Attribution("wait", "gil")
_RUNS_PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Aligned:
    """A thread's folded stacks, and the look at which the first was taken; None if that is not known."""

    stacks: Sequence[str]
    first: int | None


def with_holders(threads: Sequence[Aligned], classifier: Classifier) -> list[Aligned]:
    """The threads, with the holder of the GIL in the stacks that wait for it."""

    @cache
    def attribution(stack: str) -> Attribution:
        (parsed,) = parse_stacks([f"{stack} 1"])
        return classifier.classify(parsed).attribution

    heads = [thread_head(thread.stacks[0]) for thread in threads]
    running: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for thread, head in zip(threads, heads, strict=True):
        for look, stack in _looks(thread):
            if attribution(stack).category == _RUNS_PYTHON:
                running[head.process, look].append(head.name or str(head.thread))

    def named(stack: str, process: int, look: int) -> str:
        holders: Sequence[str] = running.get((process, look), ()) if attribution(stack) == _WAITS else ()
        return f"{stack};{gil_held_by(holders[0]).function}" if len(holders) == 1 else stack

    return [
        Aligned([named(stack, head.process, look) for look, stack in _looks(thread)] or thread.stacks, thread.first)
        for thread, head in zip(threads, heads, strict=True)
    ]


def _looks(thread: Aligned) -> Iterable[tuple[int, str]]:
    """Each stack with the look at which it was taken; none if that is not known."""
    return () if thread.first is None else enumerate(thread.stacks, thread.first)
