"""Sampled stacks on the scale of a budget: each below the time that it represents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

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
        left = [stack for found in groups if found.category == category.category for stack in groups[found]]
        yield from _spread(left, category.category, start_ns, category.ns)
        start_ns += category.ns


def _spread(stacks: Sequence[Stack], category: str, start_ns: int, length_ns: int) -> Iterator[Placed]:
    """As many samples as stacks were seen, at equal distances inside an interval."""
    total, seen = sum(stack.count for stack in stacks), 0
    for stack in stacks:
        for _ in range(stack.count):
            yield Placed(start_ns + (2 * seen + 1) * length_ns // (2 * total), category, stack)
            seen += 1
