"""How many threads work for one operator, and how they wait for the next one."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from overhead_lens.remedies.remedy import Call, Remedy, refuse


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import torch
    from torch._inductor import config

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        # Before torch 2.13, Inductor's cache would give code that was generated for another number.
        with config.patch({"cpp.threads": count}):
            yield
    finally:
        torch.set_num_threads(before)


def cores() -> Collection[int]:
    """The cores that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def physical_cores() -> int:
    """Cores of this process, hardware threads of one core counted once."""
    siblings = {str(core): str(core) for core in cores()}
    for core in siblings:
        with suppress(OSError):
            siblings[core] = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text("ascii")
    return max(1, len({*siblings.values()}))


def _of(call: Call, count: int) -> Call:
    import torch

    refuse(call.device != "cpu", "the call runs on a device")
    refuse(torch.get_num_threads() == count, f"torch has {count} thread{'s' * (count > 1)} already")
    return call.inside(partial(_threads, count))


def _with_other_threads(call: Call) -> Call:
    import torch

    refuse(call.device != "cpu" or torch.get_num_threads() == 1, "no other thread works for the call")
    return call


_SOURCE = "https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html"

_remedy = partial(Remedy, shrinks=("kernel", "wait"), source=_SOURCE)

REMEDIES = (
    _remedy(
        name="threads_1",
        summary="no operator is divided among threads",
        how="torch.set_num_threads(1)",
        apply=lambda call: _of(call, 1),
        group="threads",
    ),
    _remedy(
        name="threads_physical",
        summary="a thread for each physical core",
        how="torch.set_num_threads(PHYSICAL_CORES)",
        apply=lambda call: _of(call, physical_cores()),
        group="threads",
    ),
    _remedy(
        name="omp_wait_active",
        summary="threads spin between operators in place of sleeping",
        how="OMP_WAIT_POLICY=active",
        source="https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html",
        apply=_with_other_threads,
        variables=lambda: {"OMP_WAIT_POLICY": "active"},
    ),
)
