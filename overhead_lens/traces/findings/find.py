"""All findings of a trace, the largest bound first."""

from __future__ import annotations

from dataclasses import replace

from overhead_lens.traces.findings.device import COMPUTES, device_causes, fusible_kernels, host_bound, stalled_queues
from overhead_lens.traces.findings.host import host_causes, long_host_work
from overhead_lens.traces.findings.model import CAUSE_SHARE, Finding
from overhead_lens.traces.findings.recorded import Recorded
from overhead_lens.traces.findings.steps import KERNELS, dispatcher_of_small_operators, kernels_on_host, unlike_steps
from overhead_lens.traces.findings.waits import host_waits
from overhead_lens.traces.intervals import joined
from overhead_lens.traces.side_by_side import beside


def findings(recorded: Recorded) -> tuple[Finding, ...]:
    """Possible savings with their upper bounds."""
    with beside(events=len(recorded.events["name"])) as other:
        of_device = other.submit(lambda: list(device_causes(recorded)))
        of_steps = other.submit(lambda: [*unlike_steps(recorded), *fusible_kernels(recorded)])
        on_host = other.submit(lambda: list(kernels_on_host(recorded)))
        causes = list(host_causes(recorded))
        known = joined([one.when for one in causes])
        launching = joined([one.when for one in causes if one.finding.id != "unfused_optimizer"])
        bound = other.submit(lambda: list(host_bound(recorded, launching)))
        own = list(long_host_work(recorded, known))
        candidates = [
            *causes,
            *own,
            *bound.result(),
            *host_waits(recorded, joined([known, *(one.when for one in own)])),
            *stalled_queues(recorded, known),
            *of_device.result(),
            *of_steps.result(),
            *dispatcher_of_small_operators(recorded, known),
            *on_host.result(),
        ]
    others = [one for one in candidates if one.finding.id not in (COMPUTES, KERNELS)]
    if any(one.finding.share >= CAUSE_SHARE for one in others):
        # To compute is the purpose, so it is a cause only without another.
        candidates = others
    ranked = sorted(candidates, key=lambda one: -one.finding.bound_ns)
    found = []
    for one in ranked:
        overlaps = (other.finding.label for other in ranked if other is not one and one.when.meets(other.when))
        found.append(replace(one.finding, overlaps=tuple(overlaps)))
    return tuple(found)
