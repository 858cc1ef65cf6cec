"""The input of findings: a trace with the parts of its analysis, and shared queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints, taken
from overhead_lens.taxonomy import torch_names
from overhead_lens.taxonomy.categories import BLAME, QUEUE
from overhead_lens.taxonomy.rules import Attribution
from overhead_lens.traces.budgets import TraceBudgets
from overhead_lens.traces.columns import passing
from overhead_lens.traces.device import COPY, DeviceTimeline
from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.traces.findings.sentences import sentence
from overhead_lens.traces.host import HostEvents, distinct
from overhead_lens.traces.host_budget import ThreadPieces
from overhead_lens.traces.intervals import NOTHING, Union, cut, joined, union
from overhead_lens.traces.launch_figures.analysis import MOST_FLOOR_NS
from overhead_lens.traces.memory.model import DeviceMemory
from overhead_lens.traces.modules.scopes import Scopes
from overhead_lens.traces.timeline import sum_by

MOST_EVIDENCE = 5
LONG = 20
"""A piece of host time, or a call, is long if it takes at least this many times the median."""


@dataclass(frozen=True, slots=True)
class Located:
    """A finding with the time that its bound covers."""

    finding: Finding
    when: Union


@dataclass(frozen=True, slots=True)
class Wording:
    """The fixed texts of a finding; see ``Finding``."""

    id: str
    category: str
    summary: str
    remedy: str


@dataclass(frozen=True)
class Recorded:
    """A trace with the parts of its analysis.

    Attributes:
        threads: Pieces of every host thread by (pid, tid), the busiest first.
        devices: By number.
        waits_from_ns: Per host event the time from which it waits as a copy that holds the host (``traces/launches.py``).
        scopes: Its modules; None if it names none.
        kernel_ns: Per host event the part of its self time that is estimated to be a kernel on the host.
        memory: Of devices whose allocations were recorded.
        has_device: Whether the file names a device.
    """

    events: Events
    host: HostEvents
    threads: Mapping[tuple[str, str], ThreadPieces]
    devices: Sequence[DeviceTimeline]
    waits_from_ns: Ints
    scopes: Scopes | None
    kernel_ns: Ints
    memory: Sequence[DeviceMemory]
    has_device: bool
    analysis: TraceBudgets

    @property
    def wall_ns(self) -> int:
        """Length of the recording."""
        return self.analysis.window.wall_ns

    def at_most(self, when: Union, *, copies: bool = False, known: Union = NOTHING) -> int:
        """Upper bound of what less host time saves: each piece at most what the device that idles least idles from then on.

        Nor do all together save more: the device's work stays. Time in which launched work does not begin counts as work: what
        is launched earlier would wait, too.

        Args:
            copies: Whether copies count as idle time: they could run beside other work.
            known: Time that counts as work: something else is to blame.
        """
        if not len(when.start_ns):
            return 0
        since, until = when.start_ns, np.array([self.analysis.window.bounds[1]])
        idle_ns = until - since
        for device, stalled, working in zip(self.devices, self.stalled, self._working, strict=True):
            work = joined([*device.by_kind[:COPY], stalled]) if copies else working
            if len(known.start_ns):
                work = joined([work, known])
            idle_ns = np.minimum(idle_ns, until - since - (work.before(until) - work.before(since)))
        return int(min(np.minimum(when.end_ns - since, idle_ns).sum(), idle_ns[0]))

    def calls(self, chosen: Bools) -> Ints:
        """Positions of the host events of some names that last."""
        return np.flatnonzero(chosen[self.host.name] & (self.host.dur_ns > 0))

    def spans(self, calls: Ints) -> Union:
        """The time in which any of them is open."""
        return union(self.host.start_ns[calls], self.host.dur_ns[calls])

    def spent(self, chosen: Callable[[Attribution], bool]) -> Union:
        """The time that any thread spends in some attributions."""
        spent = [(thread, thread.attributed(chosen)) for thread in self.threads.values()]
        return joined([union(thread.start_ns[mine], thread.dur_ns[mine]) for thread, mine in spent])

    def located(
        self,
        wording: Wording,
        bound_ns: int,
        when: Union,
        evidence: tuple[Evidence, ...],
        place: tuple[str, str] = ("", ""),
        device: str = "",
    ) -> Iterator[Located]:
        """The finding, if it saves anything; ``place`` is its module and line."""
        if bound_ns > 0:
            share = bound_ns / self.wall_ns if self.wall_ns else 0.0
            finding = Finding(
                wording.id, wording.category, device, wording.summary, bound_ns, evidence, place[1], wording.remedy,
                share=round(share, 5), module=place[0],
            )  # fmt: skip
            yield Located(replace(finding, sentence=sentence(finding)), when)

    def frames(self, when: Union, threads: Sequence[ThreadPieces]) -> tuple[Evidence, ...]:
        """The frames that spend the time of some threads in ``when``, by self time."""
        rows: list[tuple[str, int, int, int]] = []
        for thread in threads:
            parts = cut(when.start_ns, when.end_ns, thread.start_ns, thread.start_ns + thread.dur_ns)
            if not len(parts.piece):
                continue
            number, used = distinct(thread.name[parts.piece])
            ns = sum_by(number, parts.dur_ns, len(used))
            owner = thread.owner[parts.piece]
            _, pairs = distinct(number * (len(thread.timeline.events) + 1) + owner + 1)
            counts = np.bincount(pairs // (len(thread.timeline.events) + 1), minlength=len(used))
            last = _last_of_each(number, parts.dur_ns)
            names, longest = (thread.names[name] for name in used.tolist()), taken(thread.timeline.events, owner[last])
            rows += zip(names, counts.tolist(), ns.tolist(), longest.tolist(), strict=True)
        ranked = sorted(rows, key=lambda row: (-row[2], row[0]))[:MOST_EVIDENCE]
        return tuple(Evidence(name, count, ns, *self.place(event)) for name, count, ns, event in ranked)

    def of_calls(self, calls: Ints, ns: Ints) -> tuple[Evidence, ...]:
        """Host events by name with their counted time, and the place of the longest."""
        return evidence(self.host.names, self.host.name[calls], ns, lambda at: self.place(int(calls[at])))

    def of_copies(self, calls: Ints, ns: Ints) -> tuple[Evidence, ...]:
        """The same by the name of each call's copy, if known."""
        names = self.events["name"]
        rows = self.host.rows[calls]
        copies = np.where(self.launched[rows] >= 0, self.launched[rows], rows)
        codes = names.codes[copies].astype(np.int64)
        return evidence(list(names.categories), codes, ns, lambda at: self.place(int(calls[at])))

    @cached_property
    def stalled(self) -> tuple[Union, ...]:
        """Per device the idle time in which launched work does not begin, for longer than any launch takes."""
        queued = [idle_by(device, (QUEUE,), inside=False) for device in self.devices]
        return tuple(each.lasting(MOST_FLOOR_NS) for each in queued)

    @cached_property
    def _working(self) -> tuple[Union, ...]:
        """Per device when it works, or launched work does not begin."""
        return tuple(joined([device.busy, stalled]) for device, stalled in zip(self.devices, self.stalled, strict=True))

    @cached_property
    def launched(self) -> Ints:
        """Row of the device work that each row of the event frame has launched last; -1 for none."""
        last = np.full(len(self.events["device"]), -1, dtype=np.int64)
        for device in self.devices:
            known = device.linked.launch >= 0
            last[device.linked.launch[known]] = device.linked.rows[known]
        return last

    def of_work(self, device: DeviceTimeline, at: Ints, ns: Ints) -> tuple[Evidence, ...]:
        """Device events by name with their counted time, and the place of the longest one's launch."""
        name = self.events["name"]
        codes = name.codes[device.linked.rows[at]].astype(np.int64)
        return evidence(
            list(name.categories), codes, ns, lambda one: self.place_of_row(int(device.linked.launch[at[one]]))
        )

    def place(self, event: int) -> tuple[str, str]:
        """Module and innermost Python function outside of torch around a host event, -1 for none; empty where unknown."""
        return ("", "") if event < 0 else (self._module_around(event), self._line_around(event))

    def place_of_row(self, row: int) -> tuple[str, str]:
        """The same for a row of the event frame, -1 for none."""
        return self.place(int(self.host.places(np.array([row]))[0]))

    def _line_around(self, event: int) -> str:
        host = self.host
        inner = host.around.open_at(host.thread[[event]], host.start_ns[[event]]).tolist()
        (line,) = host.around.nearest_of(inner, self._functions)
        return host.names[int(host.name[line])] if line >= 0 else ""

    @cached_property
    def _functions(self) -> Bools:
        """Whether each host event is a Python function outside of torch."""
        return passing(self.host.names, torch_names.FUNCTION.match)[self.host.name]

    def _module_around(self, event: int) -> str:
        if self.scopes is None:
            return ""
        at = int(self.scopes.around(self.host.thread[[event]], self.host.start_ns[[event]])[0])
        module = int(self.scopes.module[at]) if at >= 0 else -1
        return self.scopes.names[module] if module >= 0 else ""


def idle_by(device: DeviceTimeline, blamed: Sequence[str], *, inside: bool = True) -> Union:
    """Idle time by blame; ``inside`` a device's span, or over the whole window."""
    idle = device.idle
    chosen = passing(BLAME, blamed.__contains__)[idle.blame]
    if inside:
        chosen &= (idle.start_ns >= device.span[0]) & (idle.start_ns < device.span[1])
    return union(idle.start_ns[chosen], idle.dur_ns[chosen])


def evidence(
    names: Sequence[str], codes: Ints, ns: Ints, place: Callable[[int], tuple[str, str]]
) -> tuple[Evidence, ...]:
    """Count and time of each name, the most time first; ``place`` locates the longest."""
    number, used = distinct(codes)
    sums = sum_by(number, ns, len(used))
    counts = np.bincount(number, minlength=len(used))
    ranked = np.lexsort((used, -sums))[:MOST_EVIDENCE]
    longest = _last_of_each(number, ns)
    return tuple(
        Evidence(names[int(used[at])], int(counts[at]), int(sums[at]), *place(int(longest[at]))) for at in ranked
    )


def _last_of_each(number: Ints, ns: Ints) -> Ints:
    """Position of the largest value of each number, of equal ones the last; every number up to the largest occurs."""
    count = int(number.max(initial=-1)) + 1
    largest, last = np.full(count, np.iinfo(np.int64).min), np.empty(count, dtype=np.int64)
    np.maximum.at(largest, number, ns)
    at = np.flatnonzero(ns == largest[number])
    last[number[at]] = at
    return last
