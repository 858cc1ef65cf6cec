"""Divides one unprofiled call into busy and idle time of the device.

The profiler slows the host and not the kernels. So busy time per call is the trace's, and idle time is the *bare* wall time less
busy time. Idle time in the trace includes the profiler's cost; its blame is scaled to the bare idle time.
"""

from __future__ import annotations

import pandas as pd

from overhead_lens.budget.model import DeviceKernel, DeviceShare
from overhead_lens.budget.trace import LOOP_EVENT
from overhead_lens.readers.kineto.model import Trace
from overhead_lens.taxonomy.categories import BLAME
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.costs import kernel_costs
from overhead_lens.units import proportional

_TOP = 8


def device_share(
    events: pd.DataFrame, calls: int, wall_ns: int, kind: str, classifier: Classifier
) -> tuple[DeviceShare | None, tuple[str, ...]]:
    """The busiest device's share of the call, and warnings; None for a trace without device work.

    Args:
        events: Event frame of a recording of the measured loop.
        wall_ns: Bare wall time of one call.
        kind: Kind of the device: ``cuda``.
    """
    analyzer = Analyzer(Trace("", events, len(events), 0, 0), classifier)
    loop = events[events["name"] == LOOP_EVENT].head(1)
    if not analyzer.devices or loop.empty:
        return None, ()
    start_ns = int(loop["start_ns"].iloc[0])
    window = (start_ns, start_ns + int(loop["dur_ns"].iloc[0]))
    device = max(analyzer.devices, key=lambda candidate: candidate.busy.within(window))
    budget = device.budget("", window)
    kinds, launch = budget.kinds, budget.launch
    warnings = []
    if len(analyzer.devices) > 1:
        warnings.append(
            f"{len(analyzer.devices)} devices were used; the budget is that of device {device.number}, the busiest"
        )
    busy_ns = round(budget.busy_ns / calls)
    if busy_ns > wall_ns:
        warnings.append(
            f"the device is busy for {busy_ns} ns per call under the profiler, longer than the bare call: taken as all of it"
        )
    scale = min(1.0, wall_ns / busy_ns) / calls if busy_ns else 0.0
    busy_ns = min(busy_ns, wall_ns)
    inside = events[(events["start_ns"] >= window[0]) & (events["start_ns"] < window[1])]
    return DeviceShare(
        device=budget.device,
        kind=kind,
        events_per_call=budget.events / calls,
        busy_ns=busy_ns,
        idle_ns=wall_ns - busy_ns,
        compute_ns=round(kinds.compute_ns * scale),
        communication_ns=round(kinds.communication_ns * scale),
        copy_ns=round(kinds.copy_ns * scale),
        overlap_ns=round(kinds.overlap_ns * scale),
        idle_blame=_scaled([budget.idle_blame[name] for name in BLAME], wall_ns - busy_ns),
        launches_per_call=launch.count / calls,
        launch_median_ns=launch.median_ns,
        launch_p99_ns=launch.p99_ns,
        graph_launches_per_call=launch.graph_launches / calls,
        top=tuple(
            DeviceKernel(kernel.name, kernel.category, kernel.count / calls, round(kernel.total_ns / calls))
            for kernel in kernel_costs(inside[inside["device"] == device.number])[:_TOP]
        ),
    ), tuple(warnings)


def _scaled(blame_ns: list[int], idle_ns: int) -> dict[str, int]:
    """The trace's blame scaled to the bare idle time; all of it unattributed where the trace shows no idle time."""
    if not any(blame_ns):
        return {**dict.fromkeys(BLAME, 0), "unattributed": idle_ns}
    return dict(zip(BLAME, proportional(blame_ns, idle_ns), strict=True))
