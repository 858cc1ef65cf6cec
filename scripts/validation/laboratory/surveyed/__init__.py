"""Operators on so much data that nearly all of their time is the kernel's, by subject."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Call = Callable[[], Any]


def functions(owner: Any, names: str, *arguments: Any) -> dict[str, Call]:
    """Calls of a module's functions or a value's methods with the same arguments, by their names."""
    return {name: partial(getattr(owner, name), *arguments) for name in names.split()}


def all_calls() -> dict[str, Call]:
    """Name to call; each takes a tenth of a millisecond or more. Each module has inputs of its own."""
    from . import algebra, backward, compiled, networks, tensors

    combined: dict[str, Call] = {}
    for module in (tensors, networks, algebra, backward, compiled):
        calls = module.calls()
        if twice := combined.keys() & calls.keys():
            raise ValueError(f"two operators have one name: {', '.join(sorted(twice))}")
        combined |= calls
    return combined
