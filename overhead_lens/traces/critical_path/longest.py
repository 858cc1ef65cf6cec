"""The longest path through a window of the graph, evaluated once per what-if.

Nodes are in an order in which every dependency goes forward, so that one pass over the dependencies gives every node the
longest chain that leads to it. A dependency that enters from before the window counts with its part inside the window.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass

import numpy as np

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.traces.loops import run

SOURCE = -1


@dataclass(frozen=True, slots=True)
class WindowGraph:
    """The nodes of a window in order, with their dependencies; int64 arrays.

    Attributes:
        first: shape ``(n + 1,)``: ``first[v]:first[v + 1]`` are the dependencies that lead to node ``v``.
        source: Per dependency: its earlier node; ``SOURCE`` before the window.
        weight_ns: Per dependency: its time inside the window.
        label: Per dependency: the label of that time.
        delay_ns, delay_label: Per node: the delay after the last dependency, and its label.
        last, last_weight_ns, last_label: Dependencies that lead to the window's end.
        trace_nodes: Nodes of the whole trace with all its windows, the number of iterations of a loop.
    """

    first: Ints
    source: Ints
    weight_ns: Ints
    label: Ints
    delay_ns: Ints
    delay_label: Ints
    last: Ints
    last_weight_ns: Ints
    last_label: Ints
    trace_nodes: int

    def longest(self, free: Bools) -> Ints:
        """Length of the longest path if some of the labels take no time.

        Args:
            free: shape ``(k, labels)``: one row for each of ``k`` trials.

        Returns:
            int64, shape ``(k,)``.
        """
        lengths = np.zeros(len(free), dtype=np.int64)
        value = np.zeros(len(self.delay_ns), dtype=np.int64)
        inputs = (
            self.first,
            self.source,
            self.weight_ns,
            self.label,
            self.delay_ns,
            self.delay_label,
            self.last,
            self.last_weight_ns,
            self.last_label,
            free.ravel().astype(np.int8),
            free.shape[1],
        )
        run(_lengths, inputs, (lengths, value), self.trace_nodes * len(free))
        return lengths

    def path(self) -> Path:
        """The longest path."""
        count = len(self.delay_ns)
        value, tail = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
        choice = np.full(count, -1, dtype=np.int64)
        inputs = self.first, self.source, self.weight_ns, self.delay_ns
        run(_forward, inputs, (value, choice), self.trace_nodes)
        inside = self.last >= 0
        np.maximum.at(tail, self.last[inside], self.last_weight_ns[inside])
        run(_backward, inputs, (tail,), self.trace_nodes)
        ends = np.where(inside, value[self.last] if count else 0, 0) + self.last_weight_ns
        end = int(np.argmax(ends)) if len(ends) else -1
        nodes = np.empty(count, dtype=np.int64)
        start = int(self.last[end]) if end >= 0 else SOURCE
        length = run(_walk, (choice, self.source, start), (nodes,), self.trace_nodes)
        nodes = nodes[:length][::-1]
        return Path(nodes, choice[nodes], end, value, tail, choice)


@dataclass(frozen=True, slots=True)
class Path:
    """A longest path; int64 arrays.

    Attributes:
        nodes: In order.
        via: The dependency that each was reached by; -1 from the window's start.
        end: The place in ``last`` that it ends with; -1 where the window holds nothing.
        value_ns: Per node of the graph the longest chain up to it.
        tail_ns: Per node the longest chain from it to the end; -1 where nothing leads there.
        choice: Per node of the graph the dependency that its longest chain comes by; -1 for none.
    """

    nodes: Ints
    via: Ints
    end: int
    value_ns: Ints
    tail_ns: Ints
    choice: Ints


_In = Sequence[int]
_Out = MutableSequence[int]


def _forward(first: _In, source: _In, weight: _In, delay: _In, value: _Out, choice: _Out) -> int:
    for node in range(len(delay)):
        best = -1
        for edge in range(first[node], first[node + 1]):
            length = weight[edge] + (value[source[edge]] if source[edge] >= 0 else 0)
            if length > best:
                best = length
                choice[node] = edge
        value[node] = max(best, 0) + delay[node]
    return len(delay)


def _walk(choice: _In, source: _In, start: int, nodes: _Out) -> int:
    """The nodes from the last one back."""
    count = 0
    node = start
    while node >= 0:
        nodes[count] = node
        count += 1
        node = source[choice[node]] if choice[node] >= 0 else -1
    return count


def _backward(first: _In, source: _In, weight: _In, delay: _In, tail: _Out) -> int:
    for node in range(len(delay) - 1, -1, -1):
        if tail[node] >= 0:
            for edge in range(first[node], first[node + 1]):
                before = source[edge]
                length = weight[edge] + delay[node] + tail[node]
                if before >= 0 and length > tail[before]:
                    tail[before] = length
    return len(delay)


def _lengths(
    first: _In,
    source: _In,
    weight: _In,
    label: _In,
    delay: _In,
    delay_label: _In,
    last: _In,
    last_weight: _In,
    last_label: _In,
    free: _In,
    labels: int,
    lengths: _Out,
    value: _Out,
) -> int:
    for trial in range(len(lengths)):
        base = trial * labels
        for node in range(len(delay)):
            best = 0
            for edge in range(first[node], first[node + 1]):
                length = 0
                if free[base + label[edge]] == 0:
                    length = weight[edge]
                if source[edge] >= 0:
                    length += value[source[edge]]
                best = max(best, length)
            if free[base + delay_label[node]] == 0:
                best += delay[node]
            value[node] = best
        longest = 0
        for at in range(len(last)):
            length = 0
            if free[base + last_label[at]] == 0:
                length = last_weight[at]
            if last[at] >= 0:
                length += value[last[at]]
            longest = max(longest, length)
        lengths[trial] = longest
    return len(lengths)
