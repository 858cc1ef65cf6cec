"""The measured loop: the only frame in which a sample, a timing or a traced event counts.

One loop serves every instrument, so that all see the same code. It is compiled for the number of arguments: unpacking them
(``CALL_FUNCTION_EX``) would cost some 30 ns more than the call a user writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

LOOP_NAME = "measured_loop"

# Captures name it: times of different reference loops cannot be compared.
REFERENCE = "power of 476 bits to 700 bits modulo 521 bits"
_BASE = 3**300 - 1
_EXPONENT = 2**700 - 1
_MODULUS = 2**521 - 1

MeasuredLoop = Callable[[Callable[..., Any], tuple[Any, ...], int], None]


def make_measured_loop(
    arity: int, synchronize: Callable[[], None] | None = None, keywords: Sequence[str] = ()
) -> MeasuredLoop:
    """A function ``measured_loop(call, args, count)`` that calls ``call(*args)`` ``count`` times.

    Args:
        arity: Number of arguments, those by name included.
        synchronize: Called once after the calls, inside the loop's frame, so that waiting for the device is measured too.
        keywords: Names of the last arguments, which are passed by name.
    """
    names = [f"a{index}" for index in range(arity)]
    unpack = f"    ({', '.join(names)},) = args\n" if arity else ""
    by_position = names[: arity - len(keywords)]
    by_name = [f"{keyword}={name}" for keyword, name in zip(keywords, names[len(by_position) :], strict=True)]
    passed = ", ".join([*by_position, *by_name])
    source = f"def {LOOP_NAME}(call, args, count):\n{unpack}    for _ in repeat(None, count):\n        call({passed})\n"
    if synchronize is not None:
        source += "    synchronize()\n"
    namespace: dict[str, Any] = {"repeat": repeat, "synchronize": synchronize}
    exec(compile(source, __file__, "exec"), namespace)
    loop: MeasuredLoop = namespace[LOOP_NAME]
    return loop


def run_ns(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    count: int,
    synchronize: Callable[[], None] | None = None,
    keywords: Sequence[str] = (),
) -> int:
    """Wall time of ``count`` calls in a measured loop."""
    loop = make_measured_loop(len(args), synchronize, keywords)
    start_ns = time.perf_counter_ns()
    loop(call, args, count)
    return time.perf_counter_ns() - start_ns


def reference_ns() -> int:
    """Wall time of a fixed piece of C integer arithmetic, about 0.6 ms: the yardstick of clock drift.

    Not Python code: its speed changes by some 15 % for seconds while everything else runs as before.
    """
    start_ns = time.perf_counter_ns()
    pow(_BASE, _EXPONENT, _MODULUS)
    return time.perf_counter_ns() - start_ns
