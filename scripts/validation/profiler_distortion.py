"""What torch.profiler does to the wall time of compiled ``add1``: blocks bare, traced and traced with stacks, interleaved.

    python scripts/profiler_distortion.py

One process; prints JSON: side to rows of ``calls``, ``wall_ns`` and ``reference_ns`` (the reference loop before the block).
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import torch

from overhead_lens.instruments.clock import worker as clock
from overhead_lens.scenario import builtin_paths
from overhead_lens.worker import workload
from overhead_lens.worker.loop import reference_loop

BLOCK_NS = 5_000_000
BLOCKS = 12
SIDES = ("bare", "traced", "stacks")


def main() -> None:
    """Measure; the first round, in which the profiler sets itself up, is left out."""
    add1 = workload.load(str(builtin_paths()["add1"]), None, {}, {})
    count = clock.calls_per_block(workload.warm_up(add1)["call_ns"], BLOCK_NS)
    rows: dict[str, list[dict[str, int]]] = {side: [] for side in SIDES}
    for _ in range(BLOCKS + 1):
        for side in SIDES:
            started = time.perf_counter_ns()
            reference_loop()
            reference_ns = time.perf_counter_ns() - started
            with _profiler(side):
                wall_ns = add1.run(count)
            rows[side].append({"calls": count, "wall_ns": wall_ns, "reference_ns": reference_ns})
    print(json.dumps({side: blocks[1:] for side, blocks in rows.items()}))


def _profiler(side: str) -> contextlib.AbstractContextManager[Any]:
    if side == "bare":
        return contextlib.nullcontext()
    profiler: contextlib.AbstractContextManager[Any] = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], with_stack=side == "stacks"
    )
    return profiler


if __name__ == "__main__":
    main()
