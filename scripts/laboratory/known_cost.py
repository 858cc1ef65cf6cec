"""The cost that a scenario of the laboratory adds to its call: a cell of memory that can be set while it runs.

Python code burns it in an empty loop, the extension of ``laboratory.cpp`` spins on the time-stamp counter. Neither is
exact: the truth that a budget is held against is the difference of the bare wall times. How many steps the loop takes is
fixed outside the workers, so that all of them do the same.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any

# The cost in ns, and the steps of an empty loop that take about as long.
CELL_BYTES = 16

# About what tracing and compiling a small function once takes with backend "eager".
COMPILE_NS = 30_000_000

# Shapes that a recompiled function keeps before it forgets them all: below Dynamo's limit of recompiles.
KEPT_SHAPES = 6

_CALIBRATION_STEPS = 200_000


@dataclass(frozen=True)
class Params:
    """The cost in ns that the site adds to each call; ``cell``: a file that holds it and its steps and may be changed."""

    cost_ns: int = 0
    cell: str = ""


class Cost:
    """The cell as Python reads it: ``cost.cell[0]`` is the cost in ns, ``cost.cell[1]`` are the steps of a loop."""

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
            self.cell[0], self.cell[1] = params.cost_ns, round(params.cost_ns * steps_per_ns())

    @property
    def address(self) -> int:
        """Where the cell lies in memory."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._map))


COST = Cost()


@lru_cache(maxsize=1)
def extension() -> Any:
    """The built extension; the build is cached where torch.utils.cpp_extension keeps its builds."""
    from torch.utils import cpp_extension

    source = Path(__file__).with_name("laboratory.cpp")
    return cpp_extension.load(name="overhead_laboratory", sources=[str(source)], extra_cflags=["-O2"])


def open_extension(params: Params) -> Any:
    """The extension, reading its cost from the cell that the parameters name."""
    COST.open(params)
    module = extension()
    module.read_cost_from(COST.address)
    return module


def steps_per_ns() -> float:
    """Iterations of the empty loop per ns, the fastest of five runs."""
    taken = []
    for _ in range(5):
        start = time.perf_counter_ns()
        for _ in repeat(None, _CALIBRATION_STEPS):
            pass
        taken.append(time.perf_counter_ns() - start)
    return _CALIBRATION_STEPS / min(taken)
