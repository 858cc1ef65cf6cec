"""A known number of loop steps in a place that the variant names, eager or compiled: for budgets in instructions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import torch

from overhead_lens.scenario import Scenario


@dataclass(frozen=True)
class Params:
    """Steps of the counted loop; ``count_allocations``: whether the CPU allocator counts them, too."""

    steps: int = 1
    count_allocations: bool = False


class Steps:
    """What the Python loop counts to, and what the compiled call guards one by one."""

    count = 0
    guarded: ClassVar[list[int]] = []


@lru_cache(maxsize=1)
def extension() -> Any:
    """The built extension; the build is cached where torch.utils.cpp_extension keeps its builds."""
    from torch.utils import cpp_extension

    source = Path(__file__).with_name("native") / "counted.cpp"
    return cpp_extension.load(name="counted_laboratory", sources=[str(source)], extra_cflags=["-O2"])


def inputs(params: Params) -> tuple[torch.Tensor]:
    """One small tensor."""
    Steps.count = params.steps
    Steps.guarded = list(range(params.steps))
    module = extension()
    module.set_steps(params.steps)
    if params.count_allocations:
        module.install_allocator()
    return (torch.ones(8),)


def negate(x: torch.Tensor) -> torch.Tensor:
    """An operator that allocates its output."""
    return torch.neg(x)


def kernel(x: torch.Tensor) -> torch.Tensor:
    """The operator whose kernel counts."""
    return torch.ops.counted_laboratory.count(x)


def dispatch(x: torch.Tensor) -> torch.Tensor:
    """The operator that counts on its way to the kernel."""
    return torch.ops.counted_laboratory.pass_on(x)


def guarded(x: torch.Tensor) -> torch.Tensor:
    """An operator beside values that the compiled call depends on, each guarded by itself; not for eager calls."""
    for value in Steps.guarded:
        if value < 0:
            return x
    return torch.neg(x)


def python(x: torch.Tensor) -> torch.Tensor:
    """An empty loop, then an operator."""
    for _ in range(Steps.count):
        pass
    return torch.neg(x)


compiled_negate = torch.compile(negate)


def python_compiled(x: torch.Tensor) -> torch.Tensor:
    """An empty loop, then the compiled operator."""
    for _ in range(Steps.count):
        pass
    return compiled_negate(x)


SCENARIO = Scenario(
    name="laboratory_counted",
    summary="a known number of instructions in Python code, a kernel or the allocator",
    source="callgrind",
    params=Params,
    inputs=inputs,
    variants={
        "negate": negate,
        "kernel": kernel,
        "dispatch": dispatch,
        "guarded": guarded,
        "python": python,
        "python_compiled": python_compiled,
    },
)
