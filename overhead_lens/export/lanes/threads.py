"""Watched threads: the budget of each as a lane, its stacks below the time that they represent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

from overhead_lens.budget.threads import ThreadBudget
from overhead_lens.export.lanes.budget import host_slices
from overhead_lens.export.lanes.model import Lane, ThreadKey
from overhead_lens.export.lanes.samples import Placed, placed_stacks
from overhead_lens.export.names import readable
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.readers.py_spy.truncated_stacks import completed
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.classifier import Classifier

THREAD_BUDGET = "budget of a thread"


def thread_key(thread: SampledThread | ThreadBudget) -> ThreadKey:
    """The process and number of a thread."""
    return str(thread.process), str(thread.thread)


def thread_name(thread: SampledThread | ThreadBudget) -> str:
    """The name of a thread, or its number."""
    return readable(thread.name or f"thread {thread.thread}")


def thread_lane(thread: ThreadBudget, *, start_ns: int = 0, kind: str = THREAD_BUDGET, text: str = "") -> Lane:
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
