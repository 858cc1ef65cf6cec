"""Figures of one trace's device work from counters and arguments."""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.readers.kineto.model import Trace
from overhead_lens.traces.counters.model import Counters
from overhead_lens.traces.counters.products import product_rates
from overhead_lens.traces.counters.ranges import ranges
from overhead_lens.traces.counters.tracks import Track, summaries, tracks
from overhead_lens.traces.counters.work import DeviceWork, copy_rates, graph_work, occupancies
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.intervals import distinct_values
from overhead_lens.traces.launches import Linked

NO_PEAKS = (
    "rates are not set against a peak of the device: the file's deviceProperties hold neither its clock nor its memory's "
    "bandwidth (libkineto/src/DeviceProperties.cpp)"
)
NO_TIMES = (
    "the times of cuda_profiler_range events are made up by Kineto, which divides the recording evenly: none is used"
)
UNJOINED = "cuda_profiler_range events could not be joined to kernels or launches: their numbers or names differ"


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters for the result, and the full tracks for drawing and queries."""

    counters: Counters
    tracks: tuple[Track, ...]


def counted(trace: Trace, host: HostEvents, linked: Linked, end_ns: int) -> Counted:
    """Analyze the counters of a trace."""
    work = DeviceWork(trace, linked.rows)
    counter_tracks = tracks(trace.counters, distinct_values(work.device).tolist(), end_ns)
    ranged, joined_by = ranges(trace, host, linked)
    devices, occupancy = occupancies(work, trace)
    products, left_out = product_rates(trace, host, linked)
    notes = [left_out] if left_out else []
    notes += [NO_TIMES] if ranged else []
    notes += [UNJOINED] if ranged and not joined_by else []
    copies = copy_rates(work)
    has_rates = bool(products or copies) or any(one.gflop_s for one in ranged)
    made = Counters(
        tracks=summaries(counter_tracks, work) if counter_tracks else (),
        ranges=ranged,
        joined_by=joined_by,
        devices=devices,
        occupancy=occupancy,
        copies=copies,
        products=products,
        graphs=graph_work(work, linked.launch),
        notes=tuple(notes),
        peaks=NO_PEAKS if has_rates else "",
    )
    return Counted(made, tuple(counter_tracks))
