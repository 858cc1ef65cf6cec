"""torch.profiler without the import of Inductor. Runs in measured processes: needs torch and the standard library only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


def enter(profile: Any) -> None:
    """Enter a ``torch.profiler.profile``.

    It asks whether torch has Inductor, which imports that: 800 modules, for 2 s. Where nothing has imported Inductor yet, the
    profiler does here what it does in a torch without it.
    """
    module: Any = sys.modules["torch.profiler.profiler"]
    torch = module.torch
    module.torch = SimpleNamespace(**vars(torch))
    try:
        profile.__enter__()
    finally:
        module.torch = torch


@contextmanager
def profiling(**options: Any) -> Iterator[Any]:
    """A ``torch.profiler.profile`` with these options, entered."""
    profile = sys.modules["torch"].profiler.profile(**options)
    enter(profile)
    try:
        yield profile
    finally:
        profile.__exit__(*sys.exc_info())
