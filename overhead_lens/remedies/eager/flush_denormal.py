"""Denormal numbers count as zero."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from overhead_lens.remedies.remedy import Call, Remedy, refuse


@contextmanager
def _flushing() -> Iterator[None]:
    import torch

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _apply(call: Call) -> Call:
    import torch

    refuse(call.device != "cpu", "the call runs on a device")
    flushes = (torch.tensor(5e-324, dtype=torch.float64) * 1).item() == 0
    refuse(flushes, "it is on")
    refuse(not torch.set_flush_denormal(False), "this processor cannot flush denormal numbers")
    return call.inside(_flushing)


REMEDY = Remedy(
    name="flush_denormal",
    summary="the processor takes denormal numbers for zero, in the calling thread",
    how="torch.set_flush_denormal(True)",
    safety="changes_semantics",
    shrinks=("kernel",),
    source="https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html",
    apply=_apply,
)
