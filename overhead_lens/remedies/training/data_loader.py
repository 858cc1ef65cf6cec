"""Processes that prepare batches ahead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


@contextmanager
def _set(loaders: list[Any], changes: dict[str, Any]) -> Iterator[None]:
    # With its processes, where they are to stay for the next epoch.
    changes = {**changes, "_iterator": None}
    before = [{name: getattr(loader, name) for name in changes} for loader in loaders]
    for loader in loaders:
        # DataLoader refuses to have some of these changed by assignment.
        loader.__dict__.update(changes)
    try:
        yield
    finally:
        for loader, values in zip(loaders, before, strict=True):
            loader.__dict__.update(values)


def _workers(call: Call) -> Call:
    loaders, count = _without_timeout(call), os.cpu_count() or 1
    if all(loader.num_workers >= count for loader in loaders):
        raise NotApplicableError(f"there are {loaders[0].num_workers} workers")
    changes = {"num_workers": count, "prefetch_factor": 2, "persistent_workers": True}
    return call.inside(partial(_set, loaders, changes))


def _in_the_loop(call: Call) -> Call:
    loaders = _without_timeout(call)
    if not any(loader.num_workers for loader in loaders):
        raise NotApplicableError("there are no workers")
    return call.inside(partial(_set, loaders, {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False}))


def _pinned(call: Call) -> Call:
    loaders = _found(call)
    if call.device == "cpu":
        raise NotApplicableError("pinned memory serves copies to a device")
    if all(loader.pin_memory for loader in loaders):
        raise NotApplicableError("it is on")
    return call.inside(partial(_set, loaders, {"pin_memory": True}))


def _found(call: Call) -> list[Any]:
    from torch.utils.data import DataLoader

    loaders = call.reached(DataLoader)
    if not loaders:
        raise NotApplicableError("the function reaches no DataLoader by its arguments, closure or globals")
    return loaders


def _without_timeout(call: Call) -> list[Any]:
    loaders = _found(call)
    # Without processes a DataLoader refuses one, and for more it may be too short.
    if any(loader.timeout for loader in loaders):
        raise NotApplicableError("the loader has a timeout of its own")
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
