"""The sampled stacks of a program's threads, a folded section each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from overhead_lens.budget.threads import ThreadBudget
from overhead_lens.errors import UsageError
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.readers.py_spy.truncated_stacks import completed
from overhead_lens.report.outline import Drawing, Notes, Picture, Section
from overhead_lens.report.page.charts.icicle import icicle
from overhead_lens.report.page.charts.tree import tree_of
from overhead_lens.taxonomy.classifier import Classifier

_MOST_ICICLES = 7
_AT_WORK_SHARE = 0.01


def name_of(thread: ThreadBudget) -> str:
    """A thread's name; its number where it has none."""
    return thread.name or f"thread {thread.thread}"


def stacks_of_others(
    threads: Sequence[ThreadBudget], read: Callable[[], Sequence[SampledThread]], per: str
) -> Iterator[Section]:
    """A folded section for each of the busiest threads, one of which the reader opens; arguments as for ``thread_stacks``."""
    at_work = [thread for thread in threads if thread.busy_share >= _AT_WORK_SHARE]
    several = len({thread.process for thread in threads}) > 1
    for thread in at_work[:_MOST_ICICLES]:
        heading = f"Stacks of {name_of(thread)}{f', process {thread.process}' if several else ''}"
        yield Section.folded(heading, Drawing(partial(thread_stacks, read, thread, per)))


def thread_stacks(
    read: Callable[[], Sequence[SampledThread]], thread: ThreadBudget, per: str, classifier: Classifier
) -> Iterator[Picture]:
    """The icicle of one of the threads that ``read`` returns; its whole width is the thread's own time per ``per``."""
    try:
        threads = read()
    except UsageError as error:
        yield Notes([f"No stacks to draw: {error}"])
        return
    groups = completed([each.stacks for each in threads])
    fitted = classifier.fitted(stack for group in groups for stack in group)
    stacks = {(each.process, each.thread): group for each, group in zip(threads, groups, strict=True)}
    tree = tree_of(stacks[thread.process, thread.thread], fitted, f"all stacks of {name_of(thread)}")
    yield from icicle(tree, thread.there_ns, per, thread.host)
