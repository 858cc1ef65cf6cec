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


def findings(recorded: Recorded) -> tuple[Finding, ...]:
    """Possible savings with their upper bounds."""
    causes = list(host_causes(recorded))
    known = joined([one.when for one in causes])
    launching = joined([one.when for one in causes if one.finding.id != "unfused_optimizer"])
    own = list(long_host_work(recorded, known))
    candidates = [
        *causes,
        *own,
        *host_bound(recorded, launching),
        *host_waits(recorded, joined([known, *(one.when for one in own)])),
        *stalled_queues(recorded, known),
        *device_causes(recorded),
        *unlike_steps(recorded),
        *fusible_kernels(recorded),
        *dispatcher_of_small_operators(recorded, known),
        *kernels_on_host(recorded),
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
