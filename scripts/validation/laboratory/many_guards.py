"""The cost lies in many guards: the compiled function reads so many objects that checking them takes the time."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from known_cost import COST, place

# About what the guards on one attribute of one global object take.
_GUARDS_NS = 80


class Holder:
    """An object with an attribute to read."""

    def __init__(self) -> None:
        self.number = 1


@cache
def reader(cost_ns: int) -> Any:
    """A compiled function that reads an attribute of as many global objects as take about ``cost_ns``."""
    names = [f"holder_{index}" for index in range(cost_ns // _GUARDS_NS)]
    body = "".join(f"    {name}\n" for name in (f"total += {name}.number" for name in names))
    source = f"def read(x):\n    total = 0\n{body}    return torch.neg(x) if total >= 0 else x\n"
    namespace: dict[str, Any] = {"torch": torch, **{name: Holder() for name in names}}
    exec(compile(source, __file__, "exec"), namespace)  # noqa: S102
    return torch.compile(namespace["read"])


def call(x: torch.Tensor) -> torch.Tensor:
    """The compiled function with as many guards as the requested cost needs."""
    return reader(COST.cell[0])(x)


SCENARIO = place(
    "many_guards",
    "a known cost in many cheap guards of a compiled call",
    "torch/csrc/dynamo/guards.cpp (DictGuardManager)",
    call,
)
