"""The parts of each step's critical path, what lies beside it, and what a step would take if something were free.

The path is the longest chain of the window: among all chains of dependencies from its start to its end, the chain whose work and
known delays take most time. Between equally long chains the more certain dependency decides. The end is that of the busiest
thread and of the devices; another thread counts if it leads there.

In a what-if, an item takes no time on any thread or stream, and the graph is evaluated again: the longest chain of what is left,
and the intervals of the path that nothing explains, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints, numbered, numbered_rows
from overhead_lens.traces.columns import passing
from overhead_lens.traces.critical_path.graph import ASSUMED_SYNC, ASSUMED_WAIT, EDGES, EVENT, PROGRAM, Graph
from overhead_lens.traces.critical_path.longest import SOURCE, WindowGraph
from overhead_lens.traces.critical_path.model import (
    KINDS,
    UNEXPLAINED,
    CriticalPath,
    Share,
    Slack,
    WindowPath,
)
from overhead_lens.traces.critical_path.string_table import StringTable
from overhead_lens.traces.device import KINDS as DEVICE_KINDS
from overhead_lens.traces.side_by_side import side_by_side
from overhead_lens.traces.timeline import sum_by
from overhead_lens.traces.window import Window

MOST_WINDOWS = 1000
_FAR = 4096
_MOST_NAMES = 10
_UNEXPLAINED = KINDS.index(UNEXPLAINED)
_NO_LABEL = 0
# Bools per number of a kind in ``KINDS`` and of an edge in ``EDGES``.
_IS_DEVICE = passing(KINDS, DEVICE_KINDS.__contains__)
_IS_DELAY = np.arange(len(KINDS)) > np.flatnonzero(_IS_DEVICE)[-1]
_LASTS = passing(range(len(EDGES)), (PROGRAM, EVENT).__contains__)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a path, in order of time; int64 arrays of shape ``(n,)``.

    Attributes:
        start_ns, dur_ns: They sum to the window; ``dur_ns`` > 0.
        label: Number in the graph's labels.
        lane: Number in the graph's lanes.
        edge: Kind of the edge that led to it, where the lane changes of that which led there; a number in ``EDGES``, -1 for none.
    """

    start_ns: Ints
    dur_ns: Ints
    label: Ints
    lane: Ints
    edge: Ints


class WindowAnalysis:
    """The critical path of one window.

    Args:
        step: Number of the step; None for the whole window.
        window: Of positive length.
        beyond: Edges that last from in the window, or from before it, until after its end.
    """

    def __init__(self, graph: Graph, step: int | None, window: Window, beyond: Ints) -> None:
        self._graph = graph
        self.step = step
        self.window = window
        self._low, self._high = _inside(graph, window)
        self._edges = slice(int(graph.first[self._low]), int(graph.first[self._high]))
        self._beyond = beyond
        self._made = self._window_graph()
        self._path = self._made.path()

    def _window_graph(self) -> WindowGraph:
        graph, start_ns = self._graph, self.window.start_ns
        low, high, edges = self._low, self._high, self._edges
        source = graph.source[edges]
        before = source < low
        weight_ns = graph.weight_ns[edges].copy()
        # Only the part inside the window of edges that begin before it.
        reach_ns = graph.time_ns[source[before]] + weight_ns[before] - start_ns
        weight_ns[before] = np.clip(reach_ns, 0, weight_ns[before])
        delay_ns = np.minimum(graph.delay_ns[low:high], graph.time_ns[low:high] - start_ns)
        last, last_weight_ns, last_label, self._last_edge = self._lasts()
        labels = graph.label[edges], graph.delay_label[low:high], last_label, graph.label[self._beyond]
        label, delay_label, last_label, self._beyond_label = self._labelled(*labels)
        return WindowGraph(
            graph.first[low : high + 1] - self._edges.start,
            np.where(before, SOURCE, source - low),
            weight_ns,
            label,
            delay_ns,
            delay_label,
            last,
            last_weight_ns,
            last_label,
            len(graph.time_ns),
        )

    def _labelled(self, *columns: Ints) -> list[Ints]:
        """Labels renumbered per window, because a step uses few of the trace's labels."""
        together = np.concatenate(([_NO_LABEL], *columns))
        number, first = numbered(together)
        self.used = together[first]
        self.labels = self._graph.labels.selected(self.used)
        return np.split(number[1:], np.cumsum([len(column) for column in columns])[:-1])

    def _lasts(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The edges to the window's end; among equally long chains the first is the path (the busiest thread's, the latest)."""
        graph, low = self._graph, self._low
        nodes = low + np.flatnonzero(graph.decides[low : self._high])
        decides = graph.decides[graph.source[self._beyond]]
        edges = self._beyond[decides]
        source = graph.source[edges]
        begin = np.concatenate((source, nodes))
        order = np.lexsort((-begin, graph.lane[begin]))
        columns = (
            (np.where(source < low, SOURCE, source - low), nodes - low),
            (self._beyond_ns[decides], np.zeros_like(nodes)),
            (graph.label[edges], np.zeros_like(nodes)),
            (edges, np.full(len(nodes), -1)),
        )
        last, weight_ns, label, edge = (np.concatenate(column).astype(np.int64)[order] for column in columns)
        return last, weight_ns, label, edge

    @property
    def _beyond_ns(self) -> Ints:
        """The part inside the window of the edges that last beyond it."""
        start_ns, end_ns = self.window.bounds
        begun: Ints = end_ns - np.maximum(start_ns, self._graph.time_ns[self._graph.source[self._beyond]])
        return begun

    @cached_property
    def parts(self) -> Parts:
        """The parts of the path, in order."""
        made, graph, (start_ns, end_ns) = self._made, self._graph, self.window.bounds
        nodes, via, end = self._path.nodes, self._path.via, self._path.end
        time_ns = graph.time_ns[self._low + nodes]
        lane = graph.lane[self._low + nodes]
        begins = np.concatenate(([start_ns], time_ns)).astype(np.int64)
        ends = np.append(time_ns, end_ns)
        led = via >= 0
        weight_ns = np.where(led, made.weight_ns[via] if len(made.weight_ns) else 0, 0)
        label = np.where(led, made.label[via] if len(made.label) else 0, 0)
        kind = np.where(led, graph.kind[self._edges][via] if len(made.label) else -1, -1)
        delay_ns, delay_label = made.delay_ns[nodes], made.delay_label[nodes]
        last = (made.last_weight_ns[end], made.last_label[end]) if end >= 0 else (0, 0)
        weight_ns, label = np.append(weight_ns, last[0]), np.append(label, last[1])
        delay_ns, delay_label = np.append(delay_ns, 0), np.append(delay_label, 0)
        kind = np.append(kind, -1)
        # An edge's work is on the lane where it begins; delay and unexplained time are on the lane where it ends.
        # Without a node, the path is what lasts beyond the end.
        own = lane[-1] if len(lane) else graph.lane[graph.source[self._last_edge[end]]] if end >= 0 else 0
        to = np.append(lane, own)
        begin = np.concatenate((to[:1], lane)) if len(lane) else to
        entering = np.flatnonzero(led & (made.source[via] < 0)) if len(made.source) else np.zeros(0, dtype=np.int64)
        if len(entering):
            begin[entering] = graph.lane[graph.source[self._edges][via[entering]]]
        arrival = _arrivals(kind, begin != to)
        begin = np.where(_IS_DELAY[self.labels.kind[label]], to, begin)
        return _joined(begins, ends, (weight_ns, delay_ns), (label, delay_label), (begin, to), (kind, arrival))

    def path(self, operators: Sequence[int], kernels: Sequence[int], modules: Sequence[int]) -> WindowPath:
        """The report of the path; operators, kernels and modules by their names' codes."""
        labels = self.labels
        unexplained_ns = int(self.own[labels.kind == _UNEXPLAINED].sum())
        is_device, is_delay = _IS_DEVICE[labels.kind], _IS_DELAY[labels.kind]
        groups = [
            *((labels.kind == kind) for kind in range(len(KINDS)) if kind != _UNEXPLAINED),
            *((labels.operator == code) & ~is_delay for code in operators),
            *((labels.name == code) & is_device for code in kernels),
        ]
        names = [*KINDS[:-1], *map(labels.text, (*operators, *kernels))]
        measured = self._shares(np.array(groups), unexplained_ns)
        shares = [Share(name, *share) for name, share in zip(names, measured, strict=True)]
        kinds, named = shares[: len(KINDS) - 1], shares[len(KINDS) - 1 :]
        return WindowPath(
            self.step,
            self.window.start_ns,
            self.window.wall_ns,
            _there([*kinds, Share(UNEXPLAINED, unexplained_ns, unexplained_ns)]),
            _there(named[: len(operators)]),
            _there(named[len(operators) :]),
            tuple(self._modules(modules)),
            tuple(self._slack()),
            self._assumed(),
        )

    @cached_property
    def totals(self) -> Ints:
        """Time per label of the window, on the path and beside it; what is lost is known on the path only."""
        made, graph, count = self._made, self._graph, len(self.labels.kind)
        edges = _LASTS[graph.kind[self._edges]]
        sums = sum_by(made.label[edges], made.weight_ns[edges], count)
        # An edge that leaves the window lasts inside it as well, wherever it leads.
        sums += sum_by(self._beyond_label, self._beyond_ns, count)
        return np.maximum(sums, self.own)

    @cached_property
    def own(self) -> Ints:
        """Time per label on the path."""
        return sum_by(self.parts.label, self.parts.dur_ns, len(self.labels.kind))

    def _shares(self, groups: Bools, unexplained_ns: int) -> list[tuple[int, int, int]]:
        """For each group of labels its time on the path, in the window, and what the window would take if it were free.

        Args:
            groups: shape ``(k, labels)``.
        """
        own_ns, totals_ns = groups @ self.own, groups @ self.totals
        free_ns = np.full(len(groups), self.window.wall_ns)
        # An item without time on the path is free there already, and no other chain gets longer.
        tried = own_ns > 0
        if tried.any():
            free_ns[tried] = unexplained_ns + self._made.longest(groups[tried])
        return list(zip(own_ns.tolist(), totals_ns.tolist(), free_ns.tolist(), strict=True))

    def _modules(self, codes: Sequence[int]) -> Iterator[Share]:
        there = np.flatnonzero((self.totals > 0) & np.isin(self.labels.module, list(codes)))
        module = self.labels.module[there]
        number, first = numbered(module)
        own_ns, totals_ns = (sum_by(number, column[there], len(first)).tolist() for column in (self.own, self.totals))
        shares = map(Share, map(self.labels.text, module[first].tolist()), own_ns, totals_ns)
        yield from sorted(shares, key=lambda share: (-share.ns, -share.total_ns, share.name))

    def _slack(self) -> Iterator[Slack]:
        """Slack by name and device: the longest chain of all minus the longest chain through the event."""
        graph, work = self._graph, self._graph.work
        length_ns = self.window.wall_ns - int(self.own[self.labels.kind == _UNEXPLAINED].sum())
        mine = np.flatnonzero((graph.event[self._low : self._high] >= 0) & (self._path.tail_ns >= 0))
        event = graph.event[self._low + mine]
        slack_ns = length_ns - (self._path.value_ns[mine] + self._path.tail_ns[mine])
        on_path = np.zeros(self._high - self._low, dtype=bool)
        on_path[self._path.nodes] = True
        on_path = on_path[mine]
        number, first = numbered_rows(work.device[event], work.name[event])
        beside = np.flatnonzero(~on_path)
        count = np.bincount(number[beside], minlength=len(first))
        on_count = np.bincount(number[on_path], minlength=len(first))
        least_ns = np.full(len(first), np.iinfo(np.int64).max)
        np.minimum.at(least_ns, number[beside], slack_ns[beside])
        total_ns = sum_by(number[beside], slack_ns[beside], len(first))
        least_ns[count == 0] = 0
        figures = (column.tolist() for column in (count, on_count, least_ns, total_ns))
        names = (graph.labels.names[code] for code in work.name[event[first]].tolist())
        slacks = map(Slack, names, map(str, work.device[event[first]].tolist()), *figures)
        yield from sorted(
            slacks, key=lambda slack: (not slack.count, slack.least_ns, slack.total_ns, slack.kernel, slack.device)
        )

    def _assumed(self) -> Mapping[str, int]:
        kinds = self._graph.kind[self._edges]
        counts = np.bincount(kinds[self._path.via[self._path.via >= 0]], minlength=len(EDGES))
        return {EDGES[kind]: int(counts[kind]) for kind in (ASSUMED_WAIT, ASSUMED_SYNC) if counts[kind]}

    def chosen_edges(self) -> tuple[int, Ints]:
        """The first node, and per node the edge of the graph by which its longest chain comes; -1 for none."""
        choice = self._path.choice
        return self._low, np.where(choice >= 0, self._edges.start + choice, -1)

    def ends_with(self) -> tuple[int, int, int, int]:
        """The path's last node, the edge from it beyond the end (-1 for none), the edge's time in the window, its label."""
        made, end = self._made, self._path.end
        if end < 0:
            return -1, -1, 0, 0
        node = int(made.last[end])
        lasting = int(made.last_weight_ns[end]), int(self.used[made.last_label[end]])
        return (self._low + node if node >= 0 else -1), int(self._last_edge[end]), *lasting

    def table(self) -> Events:
        """The parts as ``PART_COLUMNS``."""
        parts, labels = self.parts, self.labels
        edges = np.array([*EDGES, ""], dtype=object)
        return {
            "step": np.full(len(parts.label), -1 if self.step is None else self.step),
            "start_ns": parts.start_ns,
            "dur_ns": parts.dur_ns,
            "lane": np.array([*self._graph.lanes, ""], dtype=object)[parts.lane],
            "kind": np.array(KINDS, dtype=object)[labels.kind[parts.label]],
            "name": labels.texts(labels.name)[parts.label],
            "operator": labels.texts(labels.operator)[parts.label],
            "module": labels.texts(labels.module)[parts.label],
            "reached_by": edges[parts.edge],
        }


def _there(shares: Sequence[Share]) -> tuple[Share, ...]:
    """The labels that took time in the window."""
    return tuple(share for share in shares if share.total_ns)


def _arrivals(kind: Ints, crosses: Bools) -> Ints:
    """For each edge of a path, the kind of the latest edge that led to its lane; its own kind if the path never changed lanes."""
    latest = np.maximum.accumulate(np.where(crosses, np.arange(len(kind)), -1))
    return np.where(latest >= 0, kind[np.maximum(latest, 0)], kind)


def _joined(
    begins: Ints,
    ends: Ints,
    ns: tuple[Ints, Ints],
    label: tuple[Ints, Ints],
    lane: tuple[Ints, Ints],
    edge: tuple[Ints, Ints],
) -> Parts:
    """Work, what nothing explains, and delay of each interval; empty parts are dropped and equal neighbours merged."""
    work_ns, delay_ns = ns
    rest_ns = ends - begins - work_ns - delay_ns
    none = np.zeros_like(edge[0])
    starts = np.column_stack((begins, begins + work_ns, ends - delay_ns)).ravel()
    durations = np.column_stack((work_ns, rest_ns, delay_ns)).ravel()
    labels = np.column_stack((label[0], none, label[1])).ravel()
    lanes = np.column_stack((lane[0], lane[1], lane[1])).ravel()
    edges, arrivals = (np.repeat(one, 3) for one in edge)
    there = durations > 0
    columns = (starts, durations, labels, lanes, edges, arrivals)
    starts, durations, labels, lanes, edges, arrivals = (column[there] for column in columns)
    if not len(starts):
        return Parts(starts, durations, labels, lanes, edges)
    moves = np.concatenate(([False], lanes[1:] != lanes[:-1]))
    edges = np.where(moves, arrivals, edges)
    at = np.flatnonzero(moves | np.concatenate(([True], labels[1:] != labels[:-1])))
    return Parts(starts[at], np.add.reduceat(durations, at), labels[at], lanes[at], edges[at])


class PathAnalysis:
    """The critical paths of a trace.

    Args:
        steps: Number and window of each step; those that overlap an earlier one are left out.
    """

    def __init__(self, graph: Graph, window: Window, steps: Sequence[tuple[int, Window]]) -> None:
        self.graph = graph
        self._window = window
        self._notes: list[str] = []
        chosen = self._chosen(window, steps)
        _ = self._lasting
        self.windows = side_by_side(lambda one: self.over(one[1], one[0]), chosen, events=len(graph.time_ns))

    def over(self, window: Window, step: int | None = None) -> WindowAnalysis:
        """The path of any window of positive length."""
        _, high = _inside(self.graph, window)
        # One long edge must not make every window look at all edges before it: the far ones stand apart.
        edges, source, far = self._lasting
        # For values of another dtype, searchsorted would copy all edges.
        first, past = np.searchsorted(source, np.array((high - _FAR, high), dtype=source.dtype), "left")
        able = np.concatenate((far[: np.searchsorted(self.graph.source[far], high - _FAR, "left")], edges[first:past]))
        return WindowAnalysis(self.graph, step, window, able[self._target[able] >= high])

    def everywhere(self) -> Iterator[WindowAnalysis]:
        """The paths of the windows and of the intervals before, between and after them, in order."""
        reached_ns, end_ns = self._window.bounds
        for each in self.windows:
            if each.window.start_ns > reached_ns:
                yield self.over(Window(reached_ns, each.window.start_ns - reached_ns))
            yield each
            reached_ns = each.window.bounds[1]
        if end_ns > reached_ns:
            yield self.over(Window(reached_ns, end_ns - reached_ns))

    def analysis(self) -> CriticalPath:
        """The report of the paths."""
        graph, labels = self.graph, self.graph.labels
        totals, own = np.zeros((2, len(labels.kind)), dtype=np.int64)
        for each in self.windows:
            totals[each.used] += each.totals
            own[each.used] += each.own
        operators = _costliest(labels, labels.operator, totals * ~_IS_DELAY[labels.kind])
        kernels = _costliest(labels, labels.name, totals * _IS_DEVICE[labels.kind])
        modules = _costliest(labels, labels.module, own)
        paths = side_by_side(
            lambda each: each.path(operators, kernels, modules), self.windows, events=len(graph.time_ns)
        )
        return CriticalPath(tuple(paths), graph.edge_counts, graph.broken, (*_assumptions(graph), *self._notes))

    def tables(self) -> list[Events]:
        """Parts of all paths, in order, as ``PART_COLUMNS``."""
        return [each.table() for each in self.windows]

    def _chosen(self, window: Window, steps: Sequence[tuple[int, Window]]) -> list[tuple[int | None, Window]]:
        chosen: list[tuple[int | None, Window]] = []
        reached_ns = None
        for step, each in sorted(steps, key=lambda one: (one[1].bounds, one[0])):
            if each.wall_ns and (reached_ns is None or each.start_ns >= reached_ns):
                chosen.append((step, each))
                reached_ns = each.bounds[1]
        if len(chosen) > MOST_WINDOWS:
            self._notes.append(f"of {len(chosen):,} steps the first {MOST_WINDOWS:,} have a critical path here")
        if overlapping := len(steps) - len(chosen):
            self._notes.append(
                f"{overlapping:,} steps overlap an earlier one or take no time: they have no critical path here"
            )
        return chosen[:MOST_WINDOWS] or ([(None, window)] if window.wall_ns else [])

    @cached_property
    def _target(self) -> Ints:
        graph = self.graph
        return np.repeat(np.arange(len(graph.time_ns), dtype=np.int32), np.diff(graph.first))

    @cached_property
    def _lasting(self) -> tuple[Ints, Ints, Ints]:
        """Edges of threads and devices as long as the time between their nodes, by earlier node.

        Returns:
            The edges, their earlier nodes, and the few of them that pass more than ``_FAR`` nodes.
        """
        graph = self.graph
        spans = graph.weight_ns == graph.time_ns[self._target] - graph.time_ns[graph.source]
        edges = np.flatnonzero(spans & (graph.weight_ns > 0) & np.isin(graph.kind, (PROGRAM, EVENT)))
        edges = edges[np.argsort(graph.source[edges], kind="stable")]
        return edges, graph.source[edges], edges[self._target[edges] - graph.source[edges] > _FAR]


def _costliest(labels: StringTable, code: Ints, totals_ns: Ints) -> list[int]:
    """The names with the most time."""
    chosen = np.flatnonzero((code >= 0) & (totals_ns > 0))
    used, number = np.unique(code[chosen], return_inverse=True)
    sums = sum_by(number, totals_ns[chosen], len(used))
    order = sorted(range(len(used)), key=lambda at: (-int(sums[at]), labels.text(int(used[at]))))
    return [int(used[at]) for at in order[:_MOST_NAMES]]


def _inside(graph: Graph, window: Window) -> tuple[int, int]:
    """The first node of a window, and the first one after it."""
    start_ns, end_ns = window.bounds
    return int(np.searchsorted(graph.time_ns, start_ns, "left")), int(np.searchsorted(graph.time_ns, end_ns, "right"))


def _assumptions(graph: Graph) -> Iterator[str]:
    """What the graph assumes where the trace does not say."""
    waits, synchronizations = (graph.edge_counts.get(EDGES[kind], 0) for kind in (ASSUMED_WAIT, ASSUMED_SYNC))
    if (waits or synchronizations) and not graph.synchronization_events:
        yield "the trace has no synchronization events (cuda_sync): who waited for what is partly assumed"
    if waits:
        yield (
            f"{waits:,} device events that start late are taken to have waited for what ended last before them on another stream"
        )
    if synchronizations:
        yield (
            f"{synchronizations:,} calls that block are taken to wait for the stream that their thread launched to last, "
            "or for what ended last of all that was launched before"
        )
    for kind, count in graph.broken.items():
        yield f"{count:,} dependencies ({kind.replace('_', ' ')}) contradict the clocks, which disagree, and were left out"
