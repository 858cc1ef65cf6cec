"""Divides the time of each sampled thread: one closed budget a thread.

The sampler looks at all threads of a process at once, so the thread that was seen most often tells how often it looked. One that
was seen less often had not begun, or was over, for the rest of the time. Its budget is of the time it was there, scaled to the
whole duration, so that the shares of threads compare; ``seen_share`` tells how much that was, and ``busy_share`` is of the whole
duration: a thread that worked all through its tenth of the time was busy for a tenth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from overhead_lens.budget.asleep import FEWEST_AWAKE, Slept, bounded, slept
from overhead_lens.budget.host import host_categories
from overhead_lens.budget.shares import shares_of_blocks
from overhead_lens.errors import require
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.readers.py_spy.truncated_stacks import completed
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.taxonomy.host import HostCategory
from overhead_lens.units import format_ns

MAIN = "MainThread"

# More hold too few stacks each to tell how much they differ (``shares_of_blocks``).
_MOST_BLOCKS = 20
# Less time in parallel regions needs no word about how it divides.
_PARALLEL_SHARE = 0.02
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class ThreadBudget:
    """The closed budget of one thread: host categories sum exactly to ``wall_ns``.

    Attributes:
        name: As its program calls it; empty if it has no name.
        wall_ns: How long it was watched.
        busy_share: Share of that time in which it was there and did not wait.
        seen_share: Share of the looks that found it; below 1 it had not begun, or was over, for the rest.
        slept: What its stacks and its CPU clock say of its sleep while it was there; None where that is not known.
        host: Every category in the taxonomy's order, zeros included.
    """

    name: str
    thread: int
    process: int
    wall_ns: int
    busy_share: float
    seen_share: float
    samples: int
    host: tuple[HostCategory, ...]
    slept: Slept | None = None

    def __post_init__(self) -> None:
        names = tuple(category.category for category in self.host)
        require(names == HOST_CATEGORIES, f"host categories of thread {self.thread} are {names}")
        closes = sum(category.ns for category in self.host) == self.wall_ns
        require(closes, f"host categories of thread {self.thread} do not sum to its wall time")
        require(0.0 <= self.busy_share <= self.seen_share <= 1.0, f"thread {self.thread} is busy while it is not there")

    def category(self, name: str) -> HostCategory:
        """The host category called ``name``."""
        return self.host[HOST_CATEGORIES.index(name)]

    @property
    def there_ns(self) -> int:
        """How long it was there while it was watched."""
        return round(self.seen_share * self.wall_ns)

    @property
    def called(self) -> str:
        """Its name, or its number."""
        return self.name or f"thread {self.thread}"


def thread_budgets(
    threads: Sequence[SampledThread],
    pid: int,
    wall_ns: int,
    classifier: Classifier,
    running: Mapping[int, float],
    in_system: Mapping[int, float],
    least_looks: Mapping[int, int] | None = None,
) -> tuple[ThreadBudget, ...]:
    """Budgets of the threads: the main thread of process ``pid`` first, then the busiest.

    Args:
        threads: At least one, each with at least one stack.
        pid: The watched process; other processes are its children.
        wall_ns: How long they were watched.
        running: Share of that time that threads of process ``pid`` were on a core, by their CPU clocks.
        in_system: Share of that time that they were in the operating system.
        least_looks: By process, how often it was looked at, at least; a thread that is left out may have been seen most often.
    """
    pieces = iter(completed([block for thread in threads for block in in_blocks(thread.blocks)]))
    stacks = [[next(pieces) for _ in in_blocks(thread.blocks)] for thread in threads]
    fitted = classifier.fitted(stack for blocks in stacks for block in blocks for stack in block)
    looks = Counter(least_looks)
    for thread in threads:
        looks[thread.process] = max(looks[thread.process], thread.samples)
    budgets = [
        _budget(
            thread,
            blocks,
            wall_ns,
            thread.samples / looks[thread.process],
            fitted,
            running.get(thread.thread) if thread.process == pid and thread.samples >= FEWEST_AWAKE else None,
            in_system.get(thread.thread, 0.0),
        )
        for thread, blocks in zip(threads, stacks, strict=True)
    ]
    return tuple(sorted(budgets, key=lambda budget: (not is_main(budget, pid), -budget.busy_share)))


def in_blocks(blocks: Sequence[Sequence[Stack]]) -> list[list[Stack]]:
    """Blocks of consecutive stacks, neighbours put together so that there are at most twenty; empty ones are left out."""
    size = -(-len(blocks) // _MOST_BLOCKS) or 1
    together = [chain.from_iterable(blocks[at : at + size]) for at in range(0, len(blocks), size)]
    return [stacks for each in together if (stacks := list(each))]


def is_main(thread: SampledThread | ThreadBudget, pid: int) -> bool:
    """Whether a thread is the main one of process ``pid``: it has its number, in another PID namespace only its name."""
    return thread.process == pid and (thread.thread == pid or thread.name == MAIN)


def _budget(
    thread: SampledThread,
    blocks: Sequence[Sequence[Stack]],
    wall_ns: int,
    seen_share: float,
    classifier: Classifier,
    running_share: float | None,
    system_share: float,
) -> ThreadBudget:
    shares = shares_of_blocks(blocks, classifier)
    sleep = (
        None if running_share is None else slept(shares, 1.0 - running_share / seen_share, system_share / seen_share)
    )
    shares = shares if sleep is None else bounded(shares, sleep)
    return ThreadBudget(
        name=thread.name,
        thread=thread.thread,
        process=thread.process,
        wall_ns=wall_ns,
        busy_share=seen_share * max(0.0, 1.0 - shares.share("wait")),
        seen_share=seen_share,
        samples=thread.samples,
        host=host_categories(wall_ns, shares, shares.replicates * wall_ns),
        slept=sleep,
    )


def sleep_warnings(threads: Iterable[tuple[str, Slept | None]]) -> Iterator[str]:
    """The warning that stacks show threads asleep for longer than their CPU clocks allow.

    Args:
        threads: Name and sleep of each; None where its sleep is unknown.
    """
    conflicts = [(name, sleep) for name, sleep in threads if sleep is not None and sleep.disagree]
    if conflicts:
        each = [f"{name} {sleep.by_stacks:.0%}, by CPU clock at most {sleep.at_most:.0%}" for name, sleep in conflicts]
        more = f" and {len(each) - _MOST_NAMES} more" if len(each) > _MOST_NAMES else ""
        yield (
            f"stacks show threads waiting too often ({'; '.join(each[:_MOST_NAMES])}{more}): py-spy often stops"
            " a thread only once it waits; the budget keeps to the CPU clock"
        )


def thread_warnings(
    unplaced: str, host: Sequence[HostCategory], threads: Iterable[tuple[str, Slept | None]]
) -> Iterator[str]:
    """The warning that parallel regions are unknown because the threads were not placed; then ``sleep_warnings``."""
    kernel, wait = host[HOST_CATEGORIES.index("kernel")], host[HOST_CATEGORIES.index("wait")]
    parallel_ns = wait.part_ns("parallel")
    if unplaced and parallel_ns > _PARALLEL_SHARE * sum(category.ns for category in host):
        together = format_ns(kernel.ns + parallel_ns)
        yield (
            f"{unplaced}: sampling makes its threads wait for each other, so kernel and wait/parallel are known only together"
            f" ({together}), and may be too large"
        )
    yield from sleep_warnings(threads)
