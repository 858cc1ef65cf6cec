"""Watched threads: the budget of each as a lane, and sampled stacks below the time of a budget that they represent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile
from typing import NamedTuple

from overhead_lens.budget.threads import ThreadBudget
from overhead_lens.export.lanes.budget import host_slices
from overhead_lens.export.lanes.model import Lane, ThreadKey
from overhead_lens.export.names import readable
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.readers.py_spy.truncated_stacks import completed
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import OTHER
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.taxonomy.rules import Attribution


class Placed(NamedTuple):
    """A stack at a position of the time axis, and its category."""

    time_ns: int
    category: str
    stack: Stack


def placed_stacks(
    stacks: Sequence[Stack],
    host: Sequence[HostCategory],
    classifier: Classifier,
    *,
    start_ns: int = 0,
    shown: Callable[[Stack], Stack] = lambda stack: stack,
) -> Iterator[Placed]:
    """Every stack as often as it was seen, spread over the slice of its category, or of its part, in the drawn budget.

    A sampler keeps counts and no times. Any position is as good as another; with this one, selecting a slice selects its stacks::

        budget    | python                  | guard     |
                  | user   | binding        |           |
        samples    ' ' ' '  ' ' ' ' ' ' ' '  ' ' ' ' ' '

    Args:
        stacks: Of the calls, steps or thread that the budget is of.
        start_ns: Where the budget begins.
        shown: The part of a stack that is drawn; the whole stack is classified.
    """
    groups: defaultdict[Attribution, list[Stack]] = defaultdict(list)
    for stack in stacks:
        groups[classifier.classify(stack).attribution].append(shown(stack))
    for category in host:
        part_ns = start_ns
        for part in category.parts:
            own = groups.pop(Attribution(category.category, None if part.name == OTHER else part.name), [])
            yield from _spread(own, category.category, part_ns, part.ns)
            part_ns += part.ns
        left = [stack for key in groups if key.category == category.category for stack in groups[key]]
        yield from _spread(left, category.category, start_ns, category.ns)
        start_ns += category.ns


def _spread(stacks: Sequence[Stack], category: str, start_ns: int, length_ns: int) -> Iterator[Placed]:
    """As many samples as stacks were seen, at equal distances inside an interval."""
    total, seen = sum(stack.count for stack in stacks), 0
    for stack in stacks:
        for _ in range(stack.count):
            yield Placed(start_ns + (2 * seen + 1) * length_ns // (2 * total), category, stack)
            seen += 1


def thread_key(thread: SampledThread | ThreadBudget) -> ThreadKey:
    """The process and number of a thread."""
    return str(thread.process), str(thread.thread)


def thread_name(thread: SampledThread | ThreadBudget) -> str:
    """The name of a thread, or its number."""
    return readable(thread.name or f"thread {thread.thread}")


def thread_lane(thread: ThreadBudget, *, start_ns: int = 0, kind: str = "budget of a thread", text: str = "") -> Lane:
    """The budget of a thread."""
    name = thread_name(thread)
    description = (
        f"{name}, thread {thread.thread} of process {thread.process}, busy {thread.busy_share:.0%} of the time by "
        f"{thread.samples:,} stacks{text}. The categories sum to the time watched; their order is not the order of events."
    )
    slices = host_slices(thread.host, start_ns=start_ns, kind=kind)
    return Lane(f"Budget of {name}", slices, description=description)


def thread_stacks(
    threads: Sequence[SampledThread], budgets: Sequence[ThreadBudget], classifier: Classifier, *, start_ns: int = 0
) -> dict[ThreadKey, list[Placed]]:
    """Stacks of threads below their budgets; ``thread_budgets`` computed them for the same threads."""
    host = {thread_key(budget): budget.host for budget in budgets}
    groups = completed([thread.stacks for thread in threads])
    fitted = classifier.fitted(stack for group in groups for stack in group)
    return {
        thread_key(thread): list(
            placed_stacks(group, host[thread_key(thread)], fitted, start_ns=start_ns, shown=without_bottom)
        )
        for thread, group in zip(threads, groups, strict=True)
    }


def without_bottom(stack: Stack) -> Stack:
    """A stack without the frames at its bottom that have no name: a thread's start in the C library."""
    frames = dropwhile(lambda frame: frame.native and not frame.function, stack.frames)
    return Stack(tuple(frames) or stack.frames, stack.count)
