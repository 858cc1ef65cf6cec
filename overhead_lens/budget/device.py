"""Divides an unprofiled time into busy and idle time of the device.

The profiler slows the host and not the kernels. So busy time is the trace's, and idle time is the *bare* wall time less busy
time. Idle time in the trace includes the profiler's cost; its blame is scaled to the bare idle time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from overhead_lens.budget.model import DeviceKernel, DeviceShare
from overhead_lens.budget.thresholds import LISTED_KERNELS
from overhead_lens.budget.trace import LOOP_EVENT, profiler_pauses
from overhead_lens.readers.kineto.model import Trace, columns_of
from overhead_lens.taxonomy.categories import BLAME
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.costs import kernel_costs
from overhead_lens.traces.device import DeviceTimeline
from overhead_lens.traces.intervals import Union, both, union
from overhead_lens.units import proportional


def device_share(
    events: pd.DataFrame, calls: int, wall_ns: int, kind: str, classifier: Classifier
) -> tuple[DeviceShare | None, tuple[str, ...]]:
    """The busiest device's share of a call of ``wall_ns`` (bare), and warnings; None for a trace without device work."""
    trace = Trace("", columns_of(events), len(events), 0)
    analyzer = Analyzer(trace, classifier)
    loop = events[events["name"] == LOOP_EVENT].head(1)
    if not analyzer.devices or loop.empty:
        return None, ()
    start_ns = int(loop["start_ns"].iloc[0])
    window = (start_ns, start_ns + int(loop["dur_ns"].iloc[0]))
    device = max(analyzer.devices, key=lambda candidate: candidate.busy.within(window))
    share, busy_ns = bare_share(device, kind, [window], calls, wall_ns, profiler_pauses(trace.columns))
    warnings = []
    if len(analyzer.devices) > 1:
        warnings.append(
            f"{len(analyzer.devices)} devices were used; the budget is that of device {device.number}, the busiest"
        )
    if busy_ns > wall_ns:
        warnings.append(
            f"the device is busy for {busy_ns} ns per call under the profiler, longer than the bare call: taken as all of it"
        )
    return share, tuple(warnings)


def bare_share(
    device: DeviceTimeline, kind: str, windows: Sequence[tuple[int, int]], calls: int, wall_ns: int, pauses: Union
) -> tuple[DeviceShare, int]:
    """A device's partition of one bare call, and how long it was busy per recorded call.

    Args:
        windows: Recorded calls: their starts and ends, in order of start.
        calls: How many calls they hold.
        wall_ns: Bare wall time of one call.
        pauses: Of the profiler, whose idle time is not the call's.
    """
    budgets = device.budgets("", windows)
    kinds, launch = [budget.kinds for budget in budgets], device.launches(windows)
    started = device.started(windows)
    recorded_ns = round(sum(budget.busy_ns for budget in budgets) / calls)
    scale = min(1.0, wall_ns / recorded_ns) / calls if recorded_ns else 0.0
    busy_ns = min(recorded_ns, wall_ns)
    starts_ns, ends_ns = np.array(windows, dtype=np.int64).reshape(-1, 2).T
    inside = both(union(starts_ns, ends_ns - starts_ns), pauses)
    paused = device.budgets("", list(zip(inside.start_ns.tolist(), inside.end_ns.tolist(), strict=True)))
    blame_ns = [
        sum(budget.idle_blame[name] for budget in budgets) - sum(budget.idle_blame[name] for budget in paused)
        for name in BLAME
    ]
    share = DeviceShare(
        device=str(device.number),
        kind=kind,
        events_per_call=len(started) / calls,
        busy_ns=busy_ns,
        idle_ns=wall_ns - busy_ns,
        compute_ns=round(sum(each.compute_ns for each in kinds) * scale),
        communication_ns=round(sum(each.communication_ns for each in kinds) * scale),
        copy_ns=round(sum(each.copy_ns for each in kinds) * scale),
        overlap_ns=round(sum(each.overlap_ns for each in kinds) * scale),
        idle_blame=_scaled(blame_ns, wall_ns - busy_ns),
        launches_per_call=launch.count / calls,
        launch_median_ns=launch.median_ns,
        launch_p99_ns=launch.p99_ns,
        graph_launches_per_call=launch.graph_launches / calls,
        top=tuple(
            DeviceKernel(kernel.name, kernel.category, kernel.count / calls, round(kernel.total_ns * scale))
            for kernel in kernel_costs(device.events, started)[:LISTED_KERNELS]
        ),
    )
    return share, recorded_ns


def _scaled(blame_ns: list[int], idle_ns: int) -> dict[str, int]:
    """The trace's blame scaled to the bare idle time; all of it unattributed where the trace shows no idle time."""
    if not any(blame_ns):
        return {**dict.fromkeys(BLAME, 0), "unattributed": idle_ns}
    return dict(zip(BLAME, proportional(blame_ns, idle_ns), strict=True))
