"""Launch figures of a recorded trace on its page, and those of several batch sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead_lens.report.page.model import Block, Section, Table, Text
from overhead_lens.report.text.recorded import launches as told
from overhead_lens.traces.batches import Batches
from overhead_lens.traces.launch_figures.model import DeviceLaunches

_MOST_ROWS = 200
_EXPLAINED = (
    "TKLQT is the time from the start of the launching call to the start of the kernel, summed (arXiv 2504.11750). Floor is the "
    "shortest such time of the device, queued what passed beyond it while the device was busy. A step is bound by the device if "
    "that is busy for nine tenths of it; else by the host, if the host is blamed for more than half of the idle time."
)


def launch_blocks(devices: Sequence[DeviceLaunches]) -> Iterator[Block]:
    """The cost of launches, in sentences and step by step; nothing without a device."""
    if not devices:
        return
    lines = [line for device in devices for line in (told.queueing(device), told.rates(device))]
    heads, rows = told.cells(devices)
    more = len(rows) - _MOST_ROWS
    lines += [f"{more} rows are left out; --json has them."] if more > 0 else []
    yield Text([_EXPLAINED, *lines])
    yield Table(heads, rows[:_MOST_ROWS], frozenset(range(2, 10)))


def batch_sections(batches: Batches) -> Iterator[Section]:
    """One section about all traces."""
    heads, rows = told.batch_cells(batches)
    yield Section("Batch sizes", [Text([*batches.notes]), Table(heads, rows, frozenset({0, 1, 2, 3}))])
