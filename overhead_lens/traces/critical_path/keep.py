"""The chains of a trace, taken from its graph.

The chain to an instant comes from the path of the window in which the instant lies: a step, or the interval before, between or
after steps. A chain that leaves a step therefore continues in the previous interval.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from overhead_lens.stats.values import Bools, Ints, first_places
from overhead_lens.traces.critical_path.analysis import PathAnalysis, WindowAnalysis
from overhead_lens.traces.critical_path.fragments import NOWHERE, PathFragments, StepEnd, through
from overhead_lens.traces.critical_path.graph import EVENT, Graph
from overhead_lens.traces.critical_path.model import KINDS
from overhead_lens.traces.critical_path.string_table import StringTable
from overhead_lens.traces.device import KINDS as DEVICE_KINDS
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.loops import run
from overhead_lens.traces.timeline import mark_parents

_DEVICE = tuple(KINDS.index(kind) for kind in DEVICE_KINDS)
_DROPPED = -(2**62)


def fragments_of(paths: PathAnalysis, rows: Ints) -> PathFragments:
    """The chains of a trace; ``rows``: int64, the event frame's rows of its collectives, in their order."""
    return _Maker(paths, rows).chains()


class _Maker:
    """Builds chains by the numbers of the graph's nodes; labels are coarse from the start."""

    def __init__(self, paths: PathAnalysis, rows: Ints) -> None:
        graph = paths.graph
        self._graph, self._windows, self._work = graph, paths.windows, graph.work
        self._coarse, self._label_rows = _coarse(graph.labels)
        self._position, self._number = _positions(graph, rows)
        end = _ends(graph)[self._position]
        lasts = self._work.end_ns[self._position] > self._work.start_ns[self._position]
        self._begins = np.where(lasts, _of(graph.source, graph.first[end], NOWHERE), end)
        self._own_label = self._coarse[np.where(lasts, _of(graph.label, graph.first[end], 0), 0)]
        edge = _edges(paths)
        ended = _of(self._number, graph.event, -1)
        is_through = (ended >= 0) & (_of(graph.kind, edge, -1) == EVENT)
        self._before = np.where(is_through, through(ended), _of(graph.source, edge, NOWHERE))
        self._weight_ns = np.where(is_through, 0, _of(graph.weight_ns, edge, 0))
        self._label = self._coarse[_of(graph.label, edge, 0)]
        self._delay_label = self._coarse[graph.delay_label]
        self._span_ns = graph.time_ns - _of(
            graph.time_ns, np.where(self._before >= 0, self._before, np.arange(len(edge))), 0
        )

    def chains(self) -> PathFragments:
        """All of them."""
        graph = self._graph
        ends = [self._end(window) for window in self._windows]
        entry = np.zeros(len(graph.time_ns), dtype=bool)
        entry[self._begins] = True
        entry[[end.node for end in ends if end.node >= 0]] = True
        needed = entry.astype(np.int64)
        run(mark_parents, (np.arange(len(needed)), self._before), (needed,), len(needed))
        nodes = self._nodes(needed > 0, entry)
        end_label = np.array([end.label for end in ends], dtype=np.int64)
        used = distinct_values(np.concatenate((nodes.label, self._own_label, end_label, self._coarse[:1])))
        placed = [replace(end, node=int(nodes.place[end.node]) if end.node >= 0 else NOWHERE) for end in ends]
        start_ns = self._work.start_ns[self._position]
        return PathFragments(
            tuple(replace(end, label=int(np.searchsorted(used, end.label))) for end in placed),
            nodes.time_ns,
            nodes.before.astype(np.int32),
            _small(used, nodes.label),
            nodes.place[self._begins].astype(np.int32),
            start_ns,
            self._work.end_ns[self._position] - start_ns,
            _small(used, self._own_label),
            _labels(self._label_rows[used], graph.labels),
            int(np.searchsorted(used, self._coarse[0])),
        )

    def _end(self, window: WindowAnalysis) -> StepEnd:
        """The step's end, by the graph's numbers."""
        graph = self._graph
        node, edge, weight_ns, label = window.ends_with()
        collective = -1
        if edge >= 0 and graph.kind[edge] == EVENT:
            target = int(np.searchsorted(graph.first, edge, "right")) - 1
            collective = int(self._number[graph.event[target]])
        node = NOWHERE if collective >= 0 else node
        bounds = window.window.start_ns, window.window.wall_ns
        return StepEnd(window.step, *bounds, node, collective, weight_ns, int(self._coarse[label]))

    def _pure(self) -> Ints:
        """Per node, the label of all time before it; -1 if there are several labels, or none."""
        weight_ns, delay_ns = self._weight_ns, self._graph.delay_ns
        pure = np.where((weight_ns == 0) & (delay_ns == 0), self._coarse[0], -1)
        pure = np.where(delay_ns == self._span_ns, self._delay_label, pure)
        pure = np.where(weight_ns == self._span_ns, self._label, pure)
        return np.where(self._span_ns == 0, -1, pure)

    def _nodes(self, needed: Bools, entry: Bools) -> _Nodes:
        """The nodes that remain after merging equal neighbors, with one label for the time before each."""
        graph, pure = self._graph, self._pure()
        before = self._joined(needed, entry, pure)
        remaining = np.flatnonzero(before > _DROPPED)
        before, pure = before[remaining], pure[remaining]
        ended_ns = self._work.end_ns[self._position]
        since_ns = np.where(
            before >= 0, _of(graph.time_ns, before, 0), _of(ended_ns, np.maximum(through(before), -1), 0)
        )
        nodes = _Nodes(remaining, graph.time_ns, before, np.where(pure >= 0, pure, self._label[remaining]))
        mixed = np.flatnonzero((pure < 0) & (self._span_ns[remaining] > 0))
        weight_ns, delay_ns = self._weight_ns[remaining[mixed]], graph.delay_ns[remaining[mixed]]
        late = delay_ns > 0
        at = mixed.copy()
        at[late] = nodes.cut(
            mixed[late], (nodes.time_ns[mixed] - delay_ns)[late], self._delay_label[remaining[mixed[late]]]
        )
        until_ns = since_ns[mixed] + weight_ns
        nodes.label[at[weight_ns == 0]] = self._coarse[0]
        both = (weight_ns > 0) & (until_ns < nodes.time_ns[at])
        nodes.cut(at[both], until_ns[both], np.full(int(both.sum()), self._coarse[0]))
        return nodes

    def _joined(self, needed: Bools, entry: Bools, pure: Ints) -> Ints:
        """The predecessor of each node after redundant nodes are dropped; ``_DROPPED`` for these."""
        before, count = self._before, len(needed)
        later = np.flatnonzero(needed & (before >= 0))
        followers = np.bincount(before[later], minlength=count)
        follows = np.full(count, -1, dtype=np.int64)
        follows[before[later]] = pure[later]
        joins = (pure >= 0) & (followers == 1) & (follows == pure)
        is_empty = (self._span_ns == 0) & (before != NOWHERE)
        dropped = needed & ~entry & (joins | is_empty)
        over = before.copy()
        run(_skip, (before, dropped.astype(np.int64)), (over,), count)
        return np.where(needed & ~dropped, over, _DROPPED)


class _Nodes:
    """Nodes of chains, each with one label for all that lies before it.

    Attributes:
        time_ns, before, label: Per node, int64.
        place: The number of each node of the graph; ``NOWHERE`` for one that is left out.
    """

    def __init__(self, remaining: Ints, graph_time_ns: Ints, before: Ints, label: Ints) -> None:
        self.place = np.full(len(graph_time_ns), NOWHERE, dtype=np.int64)
        self.place[remaining] = np.arange(len(remaining))
        self.time_ns, self.label = graph_time_ns[remaining], label
        self.before = np.where(before >= 0, _of(self.place, before, NOWHERE), before)

    def cut(self, at: Ints, time_ns: Ints, label: Ints) -> Ints:
        """Split the time before some nodes in two at given times, the later part with its own label; returns the new nodes."""
        new = len(self.time_ns) + np.arange(len(at))
        self.time_ns = np.concatenate((self.time_ns, time_ns))
        self.before = np.concatenate((self.before, self.before[at]))
        self.label = np.concatenate((self.label, self.label[at]))
        self.before[at], self.label[at] = new, label
        return new


def _of(values: Ints, at: Ints, default: int) -> Ints:
    """The values at some places; the default where the place is negative or behind the end."""
    return np.append(values, default)[np.where((at >= 0) & (at < len(values)), at, len(values))]


def _positions(graph: Graph, rows: Ints) -> tuple[Ints, Ints]:
    """The place of each collective in the device work, and for each event there its collective; -1 for none."""
    at = first_places(graph.work.rows, rows)
    number = np.full(len(graph.work), -1, dtype=np.int64)
    number[at] = np.arange(len(rows))
    return at, number


def _ends(graph: Graph) -> Ints:
    """The node where each device event ends."""
    nodes = np.flatnonzero(graph.event >= 0)
    ends = np.empty(len(graph.work), dtype=np.int64)
    ends[graph.event[nodes]] = nodes
    return ends


def _edges(paths: PathAnalysis) -> Ints:
    """Per node, the edge through which its window's longest chain arrives; at a border, that of the earlier window."""
    edge = np.full(len(paths.graph.time_ns), -1, dtype=np.int64)
    reached = 0
    for window in paths.everywhere():
        first, chosen = window.chosen_edges()
        new = max(0, reached - first)
        edge[first + new : first + len(chosen)] = chosen[new:]
        reached = max(reached, first + len(chosen))
    return edge


def _coarse(labels: StringTable) -> tuple[Ints, Ints]:
    """Each label's index among the distinct rows (kind, device event, operator, module); and these rows."""
    name = np.where(np.isin(labels.kind, _DEVICE), labels.name, -1)
    columns = np.column_stack((labels.kind, name, labels.operator, labels.module))
    rows, number = np.unique(columns, axis=0, return_inverse=True)
    return number.reshape(-1), rows


def _small(used: Ints, label: Ints) -> npt.NDArray[np.int32]:
    """The numbers of labels among those used."""
    return np.searchsorted(used, label).astype(np.int32)


def _labels(rows: Ints, labels: StringTable) -> StringTable:
    """The rows as labels with only the names that they use."""
    codes = np.unique(rows[:, 1:])
    codes = codes[codes >= 0]
    kind, *others = rows.T
    name, operator, module = (np.where(one >= 0, np.searchsorted(codes, one), -1) for one in others)
    return StringTable(kind, name, operator, module, tuple(labels.text(code) for code in codes.tolist()))


def _skip(before: Sequence[int], dropped: Sequence[int], over: MutableSequence[int]) -> int:
    """The predecessor of each node after some nodes are dropped."""
    for node in range(len(before)):
        earlier = before[node]
        over[node] = over[earlier] if earlier >= 0 and dropped[earlier] == 1 else earlier
    return len(before)
