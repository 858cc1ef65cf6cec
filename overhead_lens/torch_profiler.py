"""torch.profiler without the import of Inductor. Runs in measured processes: needs torch and the standard library only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


@contextmanager
def without_inductor() -> Iterator[None]:
    """Start a ``torch.profiler.profile`` in here, and it sees Inductor only if something has imported it.

    Otherwise the profiler's own ``hasattr(torch, "_inductor")`` imports it: 800 modules in 2 s (torch/profiler/profiler.py).
    """
    module: Any = sys.modules.get("torch.profiler.profiler")
    torch = getattr(module, "torch", None)
    if torch is None:  # a torch that keeps it elsewhere
        yield
        return
    module.torch = SimpleNamespace(**vars(torch))
    try:
        yield
    finally:
        module.torch = torch


@contextmanager
def profiling(**options: Any) -> Iterator[Any]:
    """A ``torch.profiler.profile`` with these options, entered."""
    profile = sys.modules["torch"].profiler.profile(**options)
    with without_inductor():
        profile.__enter__()
    try:
        yield profile
    finally:
        profile.__exit__(*sys.exc_info())
