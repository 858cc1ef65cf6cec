"""Is a known cost found in calls whose caches are displaced? A call that spins for a known time, in processes of their own.

    python -m scripts.validation.cold_calls [--processes N] [--calls N]

The call reads the clock until so many ns have passed, so that cold caches make it longer by the same, however long it spins.
What a call of 20 us and one of 20 us more differ by must be those 20 us. What is around a call would not show in that
difference: it shows in what a call of no time takes.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence

from overhead_lens.units import format_bytes
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="cold-calls",
    question="Is a known cost found in calls whose caches are displaced?",
    method=(
        "A call that reads the clock until so much time has passed is timed as `profile --cold` times it, in fresh processes, "
        "the lengths in turns. What two lengths differ by is held against what they should; a call of nothing says what is left "
        "of the loop around it."
    ),
    command="python -m scripts.validation.cold_calls",
    columns=(
        Column("read before each call"),
        Column("a call of nothing", "ns"),
        Column("spins 20 us", "ns"),
        Column("spins 40 us", "ns"),
        Column("they differ by", "ns"),
        Column("off by", "share"),
    ),
)

_SIZES = (0, 1_000_000, 8_000_000, 64_000_000)
_SPINS_NS = (20_000, 40_000)

_CODE = """
import sys, time
from dataclasses import replace
from overhead_lens.target import parse_target
from overhead_lens.worker.displaced import displaced
from overhead_lens.worker.loop import make_measured_loop
from overhead_lens.worker.workload import load

size, calls = int(sys.argv[1]), int(sys.argv[2])
clock = time.perf_counter_ns

def nothing():
    pass

def spin(ns):
    def call():
        end = clock() + ns
        while clock() < end:
            pass
    return call

bare = replace(load(parse_target("add1"), {}, None), args=(), loop=make_measured_loop(0))
sides = [displaced(replace(bare, call=call), size) for call in (nothing, spin(20_000), spin(40_000))]
for side in sides:
    side.run(10)
turns = [[side.run(calls // 10) / (calls // 10) for side in sides] for _ in range(10)]
print(*(sorted(column)[5] for column in zip(*turns)))
"""


def main() -> None:
    """Measure, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    rows: list[list[Cell]] = []
    print_heading(CLAIM.columns)
    for size in _SIZES:
        found = [timed(size, options.calls) for _ in range(options.processes)]
        empty, short, long = (statistics.median(column) for column in zip(*found, strict=True))
        differ = statistics.median(each[2] - each[1] for each in found)
        known = _SPINS_NS[1] - _SPINS_NS[0]
        name = format_bytes(size) if size else "nothing (a hot loop)"
        rows.append([name, round(empty), round(short), round(long), round(differ), round(differ / known - 1, 4)])
        print_row(rows[-1])
    write_result(options.result, CLAIM.answered(rows, []))


def timed(size_bytes: int, calls: int) -> Sequence[float]:
    """Ns per call of each of the three, in one process."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(size_bytes), str(calls)], capture_output=True, text=True, check=True
    )
    return [float(text) for text in done.stdout.split()]


if __name__ == "__main__":
    main()
