"""Processes that prepare batches ahead."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse, updated


def _with(call: Call, loaders: list[Any], **changes: Any) -> Call:
    """The call with other settings of its loaders, and without the processes that they keep for the next epoch."""
    # DataLoader refuses to have some of these changed by assignment.
    return call.inside(partial(updated, [vars(loader) for loader in loaders], {**changes, "_iterator": None}))


def _workers(call: Call) -> Call:
    loaders, count = _without_timeout(call), os.cpu_count() or 1
    refuse(all(loader.num_workers >= count for loader in loaders), f"there are {loaders[0].num_workers} workers")
    return _with(call, loaders, num_workers=count, prefetch_factor=2, persistent_workers=True)


def _in_the_loop(call: Call) -> Call:
    loaders = _without_timeout(call)
    refuse(not any(loader.num_workers for loader in loaders), "there are no workers")
    return _with(call, loaders, num_workers=0, prefetch_factor=None, persistent_workers=False)


def _pinned(call: Call) -> Call:
    loaders = _loaders(call)
    refuse(call.device == "cpu", "pinned memory serves copies to a device")
    refuse(all(loader.pin_memory for loader in loaders), "it is on")
    return _with(call, loaders, pin_memory=True)


def _loaders(call: Call) -> list[Any]:
    from torch.utils.data import DataLoader

    loaders = call.reached(DataLoader)
    refuse(not loaders, "the function reaches no DataLoader by its arguments, closure or globals")
    return loaders


def _without_timeout(call: Call) -> list[Any]:
    loaders = _loaders(call)
    # Without processes a DataLoader refuses one, and for more it may be too short.
    refuse(any(loader.timeout for loader in loaders), "the loader has a timeout of its own")
    return loaders


_PREPARING = ("wait", "python", "kernel", "dispatcher", "allocation")
_SOURCE = "https://docs.pytorch.org/docs/stable/data.html"

REMEDIES = (
    Remedy(
        name="loader_workers",
        summary="a process for each processor prepares batches, and stays for the next epoch",
        how="DataLoader(dataset, num_workers=os.cpu_count(), persistent_workers=True)",
        shrinks=_PREPARING,
        source=_SOURCE,
        apply=_workers,
        group="workers",
    ),
    Remedy(
        name="no_loader_workers",
        summary="batches are prepared in the loop itself, so that none has to be received from a process",
        how="DataLoader(dataset, num_workers=0)",
        shrinks=_PREPARING,
        source=_SOURCE,
        apply=_in_the_loop,
        group="workers",
    ),
    Remedy(
        name="pin_memory",
        summary="batches lie in memory that a device copies from without waiting",
        how="DataLoader(dataset, pin_memory=True)",
        shrinks=("wait", "launch"),
        source=_SOURCE,
        apply=_pinned,
    ),
)
