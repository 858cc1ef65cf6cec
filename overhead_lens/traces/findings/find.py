"""All findings of a trace: who bounds first, then the largest bound first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from overhead_lens.traces.findings.calls import (
    data_loading,
    dispatcher_of_small_operators,
    driver_allocations,
    fusible_kernels,
    pageable_copies,
)
from overhead_lens.traces.findings.idle import exposed_waits, graphs_could_close, which_bounds
from overhead_lens.traces.findings.model import Finding
from overhead_lens.traces.findings.recorded import Recorded

_FINDERS: tuple[Callable[[Recorded], Iterator[Finding]], ...] = (
    graphs_could_close,
    exposed_waits,
    fusible_kernels,
    driver_allocations,
    pageable_copies,
    data_loading,
    dispatcher_of_small_operators,
)


def findings(recorded: Recorded) -> tuple[Finding, ...]:
    """What could be spared, and how much of it at most."""
    found = [finding for finder in _FINDERS for finding in finder(recorded)]
    return (*which_bounds(recorded), *sorted(found, key=lambda each: (-each.bound_ns, each.id, each.device)))
