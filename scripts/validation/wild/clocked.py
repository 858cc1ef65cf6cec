"""Runs a program plainly, reads the clock at its steps, and ends it when it has seen enough: no stacks are taken.

    python clocked.py --times FILE --mark MODULE:NAME [--around MODULE:NAME ...] [--no-gc] --steps N PROGRAM [ARGUMENT ...]

A step lasts from one call of the mark to the next; ``program`` is the program's own module. The first third of N steps is
warm-up, the others are clocked, and torch.profiler records some more. What it has read goes into FILE as one JSON object.
It needs torch and the standard library only.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import importlib.util
import itertools
import json
import os
import re
import statistics
import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter_ns
from types import ModuleType
from typing import Any

_BLOCKS = 20

# Traced are so many steps, or an eighth of those before: the same number in all ranks, which end together.
_FEWEST_TRACED, _MOST_TRACED = 20, 200

# The span of an operator or a compiled graph is time in C++; those of autograd's nodes and of optimizers hold Python as well.
_OPERATORS = ("aten::", "## Call CompiledFxGraph", "mkldnn::")

# Operators that have no kernel.
_NO_KERNEL = re.compile(
    "aten::(empty.*|as_strided|_?reshape.*|_?unsafe_view|view|view_as|t|transpose|permute|expand|detach|alias|select|slice|split|"
    "narrow|unsqueeze|squeeze|unbind|resolve_conj|resolve_neg|result_type|to|set_|lift_fresh)"
)


@dataclass
class Clock:
    """What is read at the marks.

    Attributes:
        steps: Number of steps before the trace.
        ended: What is called with the reading, once there is one.
        around_ns: Time inside the functions that are clocked by themselves, since the start.
        marks: Time of each mark, and ``around_ns`` then.
    """

    steps: int
    ended: Callable[[dict[str, float]], None]
    around_ns: int = 0
    marks: array[int] = field(default_factory=lambda: array("q"))
    around: array[int] = field(default_factory=lambda: array("q"))
    profiler: Any = None

    @property
    def traced_steps(self) -> int:
        """Number of steps in the trace."""
        return max(_FEWEST_TRACED, min(_MOST_TRACED, self.steps // 8))

    def mark(self) -> None:
        """A step begins."""
        number = len(self.marks) - 1
        if number == self.steps:
            self._start_trace()
        elif self.profiler is not None and number == self.steps + self.traced_steps:
            self.ended({**self._clocked(), **self._traced()})
        self.around.append(self.around_ns)
        self.marks.append(perf_counter_ns())

    def _start_trace(self) -> None:
        import torch

        self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        self.profiler.start()

    def _clocked(self) -> dict[str, float]:
        first, last = self.steps // 3, self.steps
        return {"step_ns": _usual(self.marks[first : last + 1]), "around_ns": _usual(self.around[first : last + 1])}

    def _traced(self) -> dict[str, float]:
        self.profiler.stop()
        rows = [row for row in self.profiler.key_averages() if row.key.startswith(_OPERATORS)]
        return {
            "operators_ns": sum(row.self_cpu_time_total for row in rows) * 1000 / self.traced_steps,
            "kernels": sum(row.count for row in rows if not _NO_KERNEL.fullmatch(row.key)) / self.traced_steps,
        }


def _usual(readings_ns: Sequence[float]) -> float:
    """Time from one reading to the next: the median over blocks of their means."""
    steps_ns = [later - begin for begin, later in itertools.pairwise(readings_ns)]
    size = max(1, len(steps_ns) // _BLOCKS)
    return statistics.median(
        statistics.fmean(steps_ns[at : at + size]) for at in range(0, len(steps_ns) - size + 1, size)
    )


def wrapped(place: str, program: ModuleType, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a wrapper around ``MODULE:NAME``."""
    module, _, path = place.partition(":")
    owner: Any = program if module == "program" else importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    function = getattr(owner, name)
    setattr(owner, name, functools.wraps(function)(wrapper(function)))


def main() -> None:
    """Run the program under the clock."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=Path, required=True)
    parser.add_argument("--mark", required=True)
    parser.add_argument("--around", nargs="*", default=[])
    parser.add_argument("--no-gc", action="store_true")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("program", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    sys.argv = [str(options.program), *options.arguments]
    program = loaded(options.program)
    clock = Clock(options.steps, lambda reading: end(options.times, reading))

    def marking(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            clock.mark()
            return function(*arguments, **keywords)

        return call

    def clocking(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            begin_ns = perf_counter_ns()
            result = function(*arguments, **keywords)
            clock.around_ns += perf_counter_ns() - begin_ns
            return result

        return call

    for place in options.around:
        wrapped(place, program, clocking)
    wrapped(options.mark, program, marking)
    if options.no_gc:
        gc.disable()
    program.main()
    sys.exit(f"the program made {len(clock.marks)} steps, too few for {options.steps} and a trace")


def end(times: Path, reading: dict[str, float]) -> None:
    """Write down what was read, of the first rank, and end the process, whatever its threads are at."""
    if os.environ.get("RANK", "0") == "0":
        times.write_text(json.dumps(reading), encoding="utf-8")
    os._exit(0)


def loaded(path: Path) -> ModuleType:
    """The program, imported but not run."""
    sys.path.insert(0, str(path.parent))
    specification = importlib.util.spec_from_file_location("program", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["program"] = module
    specification.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
