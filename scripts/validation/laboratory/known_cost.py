"""The cost that a scenario of the laboratory adds to its call: a cell of memory that can be set while it runs.

Python code looks at the clock until it is spent; the extension of ``native/laboratory.cpp`` spins on the time-stamp counter.
Neither is exact: the truth that a budget is compared with is the difference of the bare wall times. An empty Python loop would
not do: for a second at a time it runs at one of three speeds, 15 % apart, on one and the same core.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from overhead_lens.scenario import Scenario

# The cost in ns.
CELL_BYTES = 8

# The file beside the cell's that holds the names of what ``operators.py`` can call, as JSON, in the order of their numbers.
NAMES_FILE = "operators.json"

# About what compiling the function of ``recompile.py`` once takes.
COMPILE_NS = 130_000_000

# Shapes that a recompiled function keeps before it forgets them all: below Dynamo's limit of recompiles.
KEPT_SHAPES = 3


@dataclass(frozen=True)
class Params:
    """The cost in ns that the site adds to each call; ``cell``: a file that holds it and may be changed."""

    cost_ns: int = 0
    cell: str = ""


class Cost:
    """The cell as Python reads it: ``cost.cell[0]`` is the cost in ns."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, CELL_BYTES)
        self.cell = memoryview(self._map).cast("q")

    def open(self, params: Params) -> None:
        """Take the cost from the parameters: of the file if one is named, else the fixed one."""
        if params.cell:
            with Path(params.cell).open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), CELL_BYTES)
            self.cell = memoryview(self._map).cast("q")
        else:
            self.cell[0] = params.cost_ns

    @property
    def address(self) -> int:
        """Where the cell lies in memory."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))


COST = Cost()


def one_small_tensor(params: Params) -> tuple[Any]:
    """One small tensor, for a call whose cost is in Python."""
    import torch

    COST.open(params)
    return (torch.ones(8),)


def place(
    name: str,
    summary: str,
    source: str,
    *variants: Callable[..., Any],
    inputs: Callable[[Params], tuple[Any, ...]] = one_small_tensor,
    check: Callable[..., None] | None = None,
) -> Scenario:
    """The scenario of a place for a cost, whose variants are called by the names of their functions."""
    by_name = {variant.__name__: variant for variant in variants}
    return Scenario(f"laboratory_{name}", summary, source, Params, inputs, by_name, check)


@lru_cache(maxsize=1)
def extension() -> Any:
    """The built extension; the build is cached where torch.utils.cpp_extension keeps its builds."""
    from torch.utils import cpp_extension

    source = Path(__file__).with_name("native") / "laboratory.cpp"
    # The OpenMP runtime is the one that torch has loaded: both have the same name.
    flags = {"extra_cflags": ["-O1", "-fopenmp"], "extra_ldflags": ["-fopenmp"]}
    return cpp_extension.load(name="overhead_laboratory", sources=[str(source)], **flags)


def open_extension(params: Params) -> Any:
    """The extension, reading its cost from the cell that the parameters name."""
    COST.open(params)
    module = extension()
    module.read_cost_from(COST.address)
    return module
