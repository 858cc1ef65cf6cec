"""Findings about a host that waits for a device: copies that hold it, reads of single values, synchronization."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from overhead_lens.stats.values import Bools, Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import passing, where
from overhead_lens.traces.findings.model import Evidence
from overhead_lens.traces.findings.recorded import Located, Recorded, Wording
from overhead_lens.traces.intervals import NOTHING, Union, both, distinct_values, union

_READS = frozenset({"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"})
_NONZERO = frozenset({"aten::nonzero"})

_SCALARS = Wording(
    "scalar_reads",
    "wait",
    "the host reads single values from the device and waits for each",
    "no .item(), float() or print of a tensor within a step: keep sums on the device and read them now and then",
)
_SIZES = Wording(
    "nonzero",
    "wait",
    "operators whose result's size depends on data wait for the device",
    "torch.where with three arguments, or masks, in place of nonzero and of indexing by booleans",
)
_UPLOADS = Wording(
    "copies_to_device",
    "wait",
    "copies to the device hold the host, as they do without pinned memory or without non_blocking=True",
    "pin the memory (DataLoader(pin_memory=True), tensor.pin_memory()) and copy with non_blocking=True",
)
_DOWNLOADS = Wording(
    "blocking_copies",
    "wait",
    "copies from the device hold the host until it has done all before them",
    "copy with non_blocking=True into pinned memory and use it a step later; one copy a step, not one a tensor",
)
_OTHERS = Wording(
    "exposed_waits",
    "wait",
    "the host waits for the device, which idles afterwards until more is launched",
    "no torch.cuda.synchronize() and no .cpu() within a step",
)


def host_waits(recorded: Recorded, known: Union) -> Iterator[Located]:
    """Time in which calls make the host wait for the device, no wait longer than the device idles from then on, nor all together.

    Without the wait the host would have gone on, and launched what closes idle time later; the device's work stays. Copies can
    run beside other work: for them the time counts in which the device neither computes nor communicates. A device that is done
    when the host has waited idles because of what the host does then: what another finding names (``known``) is left to that.
    """
    host = recorded.host
    ends_ns = host.start_ns + host.dur_ns
    waiting = passing(host.attributions, lambda each: each.category == "wait")[host.attribution] & host.runtime
    holding = recorded.waits_from_ns < ends_ns
    calls = np.flatnonzero((waiting | holding) & (host.dur_ns > 0))
    starts_ns = np.where(holding, recorded.waits_from_ns, host.start_ns)
    is_copy = passing(host.names, torch_names.ANY_COPY.search)[host.name[calls]]
    launched = recorded.launched[host.rows[calls]]
    uploads = is_copy & (launched >= 0) & where(recorded.events["name"], torch_names.COPY_TO_DEVICE.match)[launched]
    reads, sizes = _inside(recorded, calls, _READS), _inside(recorded, calls, _NONZERO)
    free = ~reads & ~sizes
    for wording, chosen in (
        (_SCALARS, reads),
        (_SIZES, sizes & ~reads),
        (_UPLOADS, uploads & free),
        (_DOWNLOADS, is_copy & ~uploads & free),
        (_OTHERS, ~is_copy & free),
    ):
        if chosen.any():
            mine = calls[chosen]
            copies = bool(is_copy[chosen].all())
            yield from _wait_findings(
                recorded, wording, mine, (starts_ns[mine], ends_ns[mine]), NOTHING if copies else known, copies
            )


def _wait_findings(
    recorded: Recorded, wording: Wording, calls: Ints, waits: tuple[Ints, Ints], known: Union, copies: bool
) -> Iterator[Located]:
    waits_ns = waits[1] - waits[0]
    when = union(waits[0], waits_ns)
    named = (recorded.of_copies if copies else recorded.of_calls)(calls, waits_ns)
    hidden_ns = max((both(when, device.busy).total_ns for device in recorded.devices), default=0)
    rest = [Evidence("waiting hidden behind the busy device", len(calls), hidden_ns)] if hidden_ns else []
    longest = int(calls[np.argmax(waits_ns)])
    bound_ns = recorded.at_most(when, copies=copies, known=known)
    yield from recorded.located(wording, bound_ns, when, (*named, *rest), recorded.place(longest))


def _inside(recorded: Recorded, calls: Ints, names: frozenset[str]) -> Bools:
    """Whether an operator of these names is open around each call."""
    host = recorded.host
    inside = np.zeros(len(calls), dtype=bool)
    operators = np.flatnonzero(passing(host.names, names.__contains__)[host.name] & host.operator)
    for thread in distinct_values(host.thread[operators]).tolist():
        spans = recorded.spans(operators[host.thread[operators] == thread])
        inside |= (host.thread[calls] == thread) & spans.holds(host.start_ns[calls])
    return inside
