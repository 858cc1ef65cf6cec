"""The cost lies in recompiles: every so many calls the shape of the input is new. Measured with ``--compile``."""

from __future__ import annotations

import torch
from known_cost import COMPILE_NS, COST, KEPT_SHAPES, Params, place

_STEPS = 2_000


def inputs(params: Params) -> tuple[()]:
    """Nothing."""
    COST.open(params)
    return ()


def neg(x: torch.Tensor) -> torch.Tensor:
    """One operator, and steps that Dynamo takes while it traces: nothing of them is left in the compiled call.

    For some 30 ms after a compilation calls take 2 to 12 % longer. The longer it took, the less of its cost that is.
    """
    total = 0
    for step in range(_STEPS):
        total += step
    return torch.neg(x)


class Shapes:
    """The tensor to call with and how long it has been used."""

    def __init__(self) -> None:
        self.tensor = torch.ones(8)
        self.calls = 0

    def change(self) -> None:
        """A shape that the compiled function has not seen, or has forgotten."""
        self.calls = 0
        size = self.tensor.numel() + 1
        if size >= 8 + KEPT_SHAPES:
            size = 8
            torch._dynamo.eval_frame.reset_code(neg.__code__)  # noqa: SLF001
        self.tensor = torch.ones(size)


COMPILED = torch.compile(neg, backend="eager", dynamic=False)
SHAPES = Shapes()


def call() -> torch.Tensor:
    """The compiled function, with a new shape as soon as the calls since the last one make up for a compilation."""
    if cost_ns := COST.cell[0]:
        # Calls without a cost would make the first with one compile: turns of the sampler would begin right after that.
        SHAPES.calls += 1
        if SHAPES.calls * cost_ns >= COMPILE_NS:
            SHAPES.change()
    return COMPILED(SHAPES.tensor)


SCENARIO = place(
    "recompile",
    "a known cost in recompiles of a compiled function",
    "torch/_dynamo/convert_frame.py",
    call,
    inputs=inputs,
)
