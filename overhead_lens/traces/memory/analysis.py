"""The memory of every device of a trace: its peak and who holds it, growth from step to step, churn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from overhead_lens.readers.kineto.model import Events
from overhead_lens.stats.values import Bools, Ints, numbered_rows
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import Columns
from overhead_lens.traces.memory.blocks import Live, live_memory
from overhead_lens.traces.memory.context import Contexts, block_kinds
from overhead_lens.traces.memory.model import KINDS, DeviceMemory, MemoryHolder, MemorySeries, MemoryStep
from overhead_lens.traces.timeline import sum_by
from overhead_lens.traces.window import Window, bounds_of

DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia", 20: "privateuse1"}
"""c10's ``DeviceType`` (c10/core/DeviceType.h)."""

_MOST_HOLDERS = 20
_SERIES_POINTS = 240

ALLOCATION_COLUMNS: Columns = {
    "device": str, "start_ns": int, "end_ns": int, "bytes": int, "kind": str, "operator": str, "module": str, "line": str,
}  # fmt: skip

Steps = Sequence[tuple[int, Window]]
_Begun = tuple[Ints, int, int]
"""Blocks that were allocated in a window, the first of its events, and the first behind it."""


@dataclass(frozen=True)
class DeviceLife:
    """One device with its blocks.

    Attributes:
        name: ``cpu``, ``cuda:0``, ...
        where: Of all memory events of the trace.
    """

    name: str
    live: Live
    where: Contexts

    @cached_property
    def kind(self) -> Ints:
        """Number in ``KINDS`` per block."""
        return block_kinds(self.live.blocks, self.where, self.live.rows)

    def analysis(self, steps: Steps) -> DeviceMemory:
        """The report of it."""
        live, blocks = self.live, self.live.blocks
        peak = int(live.live_bytes.argmax()) - 1
        at_peak = blocks.live_after(peak)
        held = self._holders(at_peak & blocks.recorded)
        recorded_bytes = sum(holder.bytes for holder in held)
        peak_bytes, unaddressed_bytes = int(live.live_bytes[peak + 1]), live.unaddressed_at(peak)
        begun = list(self._begun([window for _, window in steps]))
        unreleased = len(live.rows)
        within = blocks.recorded & (blocks.last < unreleased)
        churn = self._among(begun, lambda ends, last: ends < last) if begun else within
        kept = self._among(begun[1:-1], lambda ends, _: ends == unreleased)
        churned = self._holders(churn, by_class=True)
        return DeviceMemory(
            device=self.name,
            events=len(live.rows),
            start_bytes=int(live.live_bytes[0]),
            end_bytes=int(live.live_bytes[-1]),
            peak_bytes=peak_bytes,
            peak_ns=int(live.start_ns[max(0, peak)]),
            reserved_peak_bytes=None if live.reserved_bytes is None else int(live.reserved_bytes.max()),
            before_bytes=peak_bytes - recorded_bytes - unaddressed_bytes,
            kinds=self._by_kind(at_peak, peak_bytes),
            holders=held[:_MOST_HOLDERS],
            others_bytes=sum(holder.bytes for holder in held[_MOST_HOLDERS:]) + unaddressed_bytes,
            churn=churned[:_MOST_HOLDERS],
            churn_bytes=sum(holder.bytes for holder in churned),
            churn_blocks=int(churn.sum()),
            kept=self._holders(kept, by_class=True)[:_MOST_HOLDERS],
            steps=tuple(self._step(number, each) for (number, _), each in zip(steps, begun, strict=True)),
            over_time=series(live),
            repairs=live.repairs,
        )

    def over_time(self) -> Events:
        """Live and reserved bytes after each event."""
        reserved = self.live.reserved_bytes
        return {
            "device": self.name,
            "start_ns": self.live.start_ns,
            "live_bytes": self.live.live_bytes[1:],
            "reserved_bytes": np.full(len(self.live.rows), -1) if reserved is None else reserved,
        }

    def allocations(self) -> Events:
        """Every block: when it was live, -1 for beyond the recording, its size, kind, and where it was allocated, as numbers."""
        blocks, times = self.live.blocks, np.append(self.live.start_ns, -1)
        operator, module, line = self._places()
        return {
            "device": self.name,
            "start_ns": times[np.where(blocks.recorded, blocks.first, len(times) - 1)],
            "end_ns": times[blocks.last],
            "bytes": blocks.bytes,
            "kind": np.array(KINDS, dtype=object)[self.kind],
            "operator": operator,
            "module": module,
            "line": line,
        }

    def _places(self) -> tuple[Ints, Ints, Ints]:
        """Operator, module and line of the allocation per block, -1 for unknown."""
        blocks = self.live.blocks
        rows = self.live.rows[np.maximum(blocks.first, 0)]
        operator, module, line = (
            np.where(blocks.recorded, column[rows], -1)
            for column in (self.where.operator, self.where.module, self.where.line)
        )
        return operator, module, line

    def _holders(self, chosen: Bools, *, by_class: bool = False) -> tuple[MemoryHolder, ...]:
        """The places that allocated the chosen blocks, the largest first; modules separately or by class."""
        at = np.flatnonzero(chosen)
        if not len(at):
            return ()
        operator, module, line = (codes[at] for codes in self._places())
        modules, module = self._modules(module, by_class=by_class)
        number, first = numbered_rows(operator, module, line, self.kind[at])
        operator, module, line, kind = (codes[first] for codes in (operator, module, line, self.kind[at]))
        count, size = np.bincount(number), sum_by(number, self.live.blocks.bytes[at], len(first))
        order = np.lexsort((kind, -line, -module, -operator, -count, -size))
        holders = zip(*(column[order].tolist() for column in (operator, module, line, kind, count, size)), strict=True)
        names = self.where.names

        def name(code: int) -> str:
            return names[code] if code >= 0 else ""

        return tuple(
            MemoryHolder(name(operator), modules[module], name(line), KINDS[kind], blocks, size)
            for operator, module, line, kind, blocks, size in holders
        )

    def _modules(self, codes: Ints, *, by_class: bool) -> tuple[list[str], Ints]:
        """Names of modules, and the number of each code's among them."""
        used, number = np.unique(codes, return_inverse=True)
        texts = [module_name(self.where.names[code], by_class=by_class) if code >= 0 else "" for code in used.tolist()]
        known = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        return list(known), np.array([known[text] for text in texts], dtype=np.int64)[number]

    def _by_kind(self, at_peak: Bools, peak_bytes: int) -> dict[str, int]:
        sums = sum_by(self.kind[at_peak], self.live.blocks.bytes[at_peak], len(KINDS))
        kinds = dict(zip(KINDS, sums.tolist(), strict=True))
        kinds["unknown"] += peak_bytes - sum(kinds.values())
        return kinds

    def _begun(self, windows: Sequence[Window]) -> Iterator[_Begun]:
        """The blocks that were allocated in each window, the first of its events, and the first behind it."""
        order = np.argsort(self.live.blocks.first, kind="stable")
        events = np.searchsorted(self.live.start_ns, np.stack(bounds_of(windows)), "left")
        edges = np.searchsorted(self.live.blocks.first[order], events, "left")
        for first, last, begin, end in zip(*events.tolist(), *edges.tolist(), strict=True):
            yield order[begin:end], first, last

    def _among(self, steps: Sequence[_Begun], test: Callable[[Ints, int], Bools]) -> Bools:
        """Which blocks were allocated in a step and pass a test of their ends, and of the first event behind the step."""
        chosen = np.zeros(len(self.live.blocks.first), dtype=bool)
        for begun, _, last in steps:
            chosen[begun[test(self.live.blocks.last[begun], last)]] = True
        return chosen

    def _step(self, number: int, step: _Begun) -> MemoryStep:
        live, blocks = self.live, self.live.blocks
        begun, first, last = step
        size, ends = blocks.bytes[begun], blocks.last[begun]
        churn = ends < last
        return MemoryStep(
            number,
            start_bytes=int(live.live_bytes[first]),
            end_bytes=int(live.live_bytes[last]),
            peak_bytes=int(live.live_bytes[first : last + 1].max()),
            allocated_bytes=int(size.sum() + np.maximum(live.unaddressed[first:last], 0).sum()),
            churn_bytes=int(size[churn].sum()),
            churn_blocks=int(churn.sum()),
            kept_bytes=int(size[ends == len(live.rows)].sum()),
        )


def device_lives(memory: Events, where: Contexts) -> list[DeviceLife]:
    """Every device that memory was allocated on or released from; the host last."""
    kind, number = memory["device_type"], memory["device"]
    first = numbered_rows(kind, number)[1]
    devices = sorted(
        zip(kind[first].tolist(), number[first].tolist(), strict=True), key=lambda key: (key[0] == 0, *key)
    )
    return [
        DeviceLife(
            _device_name(*key), live_memory(memory, np.flatnonzero((kind == key[0]) & (number == key[1]))), where
        )
        for key in devices
    ]


def module_name(event: str, *, by_class: bool = False) -> str:
    """``Linear_3`` of the event ``nn.Module: Linear_3``; its class alone: ``Linear``."""
    name = event.removeprefix(torch_names.MODULE_PREFIX)
    return name.rpartition("_")[0] or name if by_class and name.rpartition("_")[2].isdecimal() else name


def _device_name(kind: int, number: int) -> str:
    name = DEVICE_TYPES.get(kind, f"device type {kind}")
    return name if number < 0 or kind == 0 else f"{name}:{number}"


def series(live: Live) -> MemorySeries:
    """Thin a device's series for drawing; peaks are kept."""
    count = len(live.rows)
    evenly = np.linspace(0, count, min(count, _SERIES_POINTS), endpoint=False).astype(np.int64)
    # The last event is an interval of its own: there the series ends.
    begins = np.unique(np.append(evenly, count - 1))
    reserved = () if live.reserved_bytes is None else tuple(np.maximum.reduceat(live.reserved_bytes, begins).tolist())
    live_bytes = np.maximum.reduceat(live.live_bytes[1:], begins)
    live_bytes[0] = max(live_bytes[0], live.live_bytes[0])
    return MemorySeries(tuple(live.start_ns[begins].tolist()), tuple(live_bytes.tolist()), reserved)
