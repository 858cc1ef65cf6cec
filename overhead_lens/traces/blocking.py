"""Copies that block the host: an asynchronous copy waits for the device if the host memory is not pinned.

The CUDA Runtime API (API synchronization behavior) copies to pageable memory synchronously with respect to the host, and returns
from a copy out of it once the memory was staged. Such a call is a launch for as long as the trace's other launches take
(median), and waits for the device from then on::

    cudaMemcpyAsync   [launch|.......wait........)
    device             [gemm............][Memcpy DtoH (Device -> Pageable)]
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from overhead_lens.stats.values import Ints
from overhead_lens.taxonomy import torch_names
from overhead_lens.traces.columns import where
from overhead_lens.traces.host import HostEvents
from overhead_lens.traces.launches import Linked


def waits_from(events: pd.DataFrame, host: HostEvents, linked: Linked) -> Ints:
    """For each host event, the time from which it waits for the device as such a copy; its end if it does not wait."""
    start_ns, dur_ns = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    pageable = where(events["name"], lambda name: torch_names.PAGEABLE_COPY.match(name) is not None)
    asynchronous = where(events["name"], lambda name: torch_names.ASYNCHRONOUS_COPY.match(name) is not None)
    launched = linked.launch >= 0
    calls, copies = linked.launch[launched], pageable[linked.rows[launched]]
    holding = np.unique(calls[copies & asynchronous[calls]])
    others = np.setdiff1d(calls, holding)
    usual_ns = int(np.percentile(dur_ns[others], 50, method="lower")) if len(others) else 0
    ends_ns = host.start_ns + host.dur_ns
    at = np.searchsorted(host.rows, holding)
    ends_ns[at] = np.minimum(start_ns[holding] + usual_ns, ends_ns[at])
    return ends_ns
