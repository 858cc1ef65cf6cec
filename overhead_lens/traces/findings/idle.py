"""Findings about idle devices: what the host keeps them waiting with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy.categories import BLAME
from overhead_lens.traces.device import DeviceTimeline
from overhead_lens.traces.findings.model import Evidence, Finding
from overhead_lens.traces.findings.recorded import Recorded, evidence
from overhead_lens.traces.intervals import cut, union
from overhead_lens.traces.launch_figures.bound import NOT_THE_HOST, bound_of, host_idle_ns

_OF_HOST = np.array([name not in NOT_THE_HOST for name in BLAME])


def which_bounds(recorded: Recorded) -> Iterator[Finding]:
    """Whether the device or the host decides: the device is busy for nine tenths, or most of its idle time is the host's."""
    for device, timeline in zip(recorded.analysis.devices, recorded.devices, strict=True):
        bound = bound_of(device)
        idle = timeline.idle
        inside = (idle.start_ns >= timeline.span[0]) & (idle.start_ns < timeline.span[1])
        blamed = evidence(BLAME, idle.blame[inside], idle.dur_ns[inside])
        if bound == "device" and device.idle_ns:
            yield Finding(
                "device_bound",
                "compute",
                device.device,
                "the device is busy nearly all the time",
                device.idle_ns,
                blamed,
                "",
                "nothing on the host spares more than this: faster, fewer or lower-precision kernels",
            )
        elif bound == "host":
            by_host = {name: ns for name, ns in device.idle_blame.items() if name not in NOT_THE_HOST}
            yield Finding(
                "host_bound",
                max(by_host, key=lambda name: by_host[name]),
                device.device,
                "the device waits for the host to launch its work",
                host_idle_ns(device),
                blamed,
                "",
                "fewer launches per step: torch.compile, larger batches, CUDA graphs",
            )


def graphs_could_close(recorded: Recorded) -> Iterator[Finding]:
    """Idle time of a device that the host is blamed for and that ends with work launched by itself, not by a graph.

    A captured graph launches all of its work at once, so that the host has no part in the time between two of its events.
    """
    for device in recorded.devices:
        idle = device.idle
        chosen = np.flatnonzero(_OF_HOST[idle.blame] & (idle.start_ns >= device.span[0]))
        ends_ns = idle.start_ns[chosen] + idle.dur_ns[chosen]
        following = np.searchsorted(device.start_ns, ends_ns, "left")
        inside = following < len(device.start_ns)
        chosen, following = chosen[inside], following[inside]
        alone = (device.linked.launch[following] >= 0) & ~device.linked.is_graph[following]
        chosen, following = chosen[alone], following[alone]
        if not len(chosen):
            continue
        longest = int(following[np.argmax(idle.dur_ns[chosen])])
        yield Finding(
            "graphs_could_close_idle",
            "launch",
            str(device.number),
            "the device idles while the host prepares launches one by one",
            int(idle.dur_ns[chosen].sum()),
            evidence(BLAME, idle.blame[chosen], idle.dur_ns[chosen]),
            recorded.line_of_row(int(device.linked.launch[longest])),
            'capture the step as a CUDA graph: torch.compile(mode="reduce-overhead") or torch.cuda.graph',
        )


def exposed_waits(recorded: Recorded) -> Iterator[Finding]:
    """Idle time of a device from its last work before a blocking call returned until its next work.

    Without that call the host would have gone on and launched what follows while the device was still busy. What the call waited
    while the device was busy is hidden: sparing it makes nothing faster by itself, and it stands in the evidence.
    """
    host = recorded.host
    waiting = np.array([each.category == "wait" for each in host.attributions] or [False])[host.attribution]
    calls = np.flatnonzero(waiting & host.runtime & (host.dur_ns > 0))
    if not len(calls):
        return
    waits = union(host.start_ns[calls], host.dur_ns[calls])
    ends_ns = host.start_ns[calls] + host.dur_ns[calls]
    for device in recorded.devices:
        gaps = gaps_of(device)
        at = np.searchsorted(gaps[0], ends_ns, "right") - 1
        exposed = (at >= 0) & (ends_ns < gaps[1][at]) if len(gaps[0]) else np.zeros(len(calls), dtype=bool)
        bound = int((gaps[1] - gaps[0])[np.unique(at[exposed])].sum())
        if not bound:
            continue
        hidden = cut(waits.start_ns, waits.end_ns, device.busy.start_ns, device.busy.end_ns).dur_ns.sum()
        named = evidence(host.names, host.name[calls[exposed]], host.dur_ns[calls[exposed]])
        longest = int(calls[exposed][np.argmax((gaps[1] - gaps[0])[at[exposed]])])
        yield Finding(
            "exposed_waits",
            "wait",
            str(device.number),
            "the device idles after calls that made the host wait for it",
            bound,
            (*named, Evidence("waiting hidden behind the busy device", len(calls), int(hidden))),
            recorded.line_around(longest),
            "no .item(), .cpu() or print of a tensor within a step; copies with non_blocking=True from pinned memory",
        )


def gaps_of(device: DeviceTimeline) -> tuple[Ints, Ints]:
    """Start and end of each stretch between two busy ones."""
    return device.busy.end_ns[:-1], device.busy.start_ns[1:]
