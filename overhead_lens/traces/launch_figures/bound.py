"""Whether the device or the host decides how long an interval takes."""

from __future__ import annotations

from overhead_lens.taxonomy.categories import QUEUE
from overhead_lens.traces.budgets import DeviceBudget
from overhead_lens.traces.launch_figures.model import Bound

NOT_THE_HOST = ("wait", QUEUE, "unattributed")
"""Blame for idle time that preparing launches faster would not save."""

_BUSY_SHARE, _HOST_SHARE = 0.9, 0.5


def bound_of(device: DeviceBudget) -> Bound | None:
    """The device, if busy for nine tenths; the host, if blamed for more than half of the idle time; None without work."""
    if not device.busy_ns:
        return None
    if device.busy_ns >= _BUSY_SHARE * device.span_ns:
        return "device"
    return "host" if host_idle_ns(device) > _HOST_SHARE * device.idle_ns else "neither"


def host_idle_ns(device: DeviceBudget) -> int:
    """Idle time that the host is blamed for."""
    return sum(ns for name, ns in device.idle_blame.items() if name not in NOT_THE_HOST)
