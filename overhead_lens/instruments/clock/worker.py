"""Times blocks of the bare workload, with nothing of ours inside them. Runs in the worker."""

from __future__ import annotations

import statistics
import time
from typing import Any

from overhead_lens.worker.loop import reference_ns
from overhead_lens.worker.session import Session, operation
from overhead_lens.worker.usage import Waits, collected_ns, other_threads_ns, usage_of_thread, watch_collections
from overhead_lens.worker.workload import Workload

_RESIZED_AT_MOST = 5


def division(workload: Workload, call_ns: float, block_ns: int, piece_ns: int | None) -> tuple[int, int | None]:
    """Calls per piece and pieces per block; None for a whole block, as on a device."""
    block = workload.calls_within(call_ns, block_ns)
    if piece_ns is None or workload.on_device:
        return block, None
    piece = workload.calls_within(call_ns, piece_ns)
    return piece, max(1, round(block / piece))


def measure_blocks(
    workload: Workload, call_ns: float, block_ns: int, block_count: int, budget_ns: int, piece_ns: int | None = None
) -> tuple[list[dict[str, int]], float]:
    """Time blocks, with a run of the reference loop before each.

    Args:
        call_ns: Expected time of a call.
        block_ns: Time that a block is to take.
        budget_ns: No further block starts after this much time, once there are three.
        piece_ns: Time that a piece of a block is to take; None for blocks timed as a whole.

    Returns:
        A row per block: ``block``, ``calls``, ``wall_ns``, ``reference_ns``, ``compiles``, and of the calling thread
        ``minor_faults``, ``system_ns`` (in the operating system's kernel) and ``cpu_ns``; of a block in pieces also
        ``steady_ns``, the median piece times their number; where collections are watched also ``collected_ns``, the time
        that the garbage collector took. ``delayed_ns`` and ``contended_ns`` are as of ``Waits.during``. And the expected time
        of a call, updated.
    """
    rows: list[dict[str, int]] = []
    started = time.perf_counter_ns()
    while len(rows) < block_count and (len(rows) < 3 or time.perf_counter_ns() - started < budget_ns):
        row, call_ns = measure_whole_block(workload, call_ns, block_ns, piece_ns)
        rows.append({"block": len(rows), **row})
    return rows, call_ns


def measure_whole_block(
    workload: Workload, call_ns: float, block_ns: int, piece_ns: int | None = None
) -> tuple[dict[str, int], float]:
    """Time one block; repeat with more calls if it took less than half of ``block_ns``.

    A warm-up may find calls too slow: where two processes warm up side by side, their threads wait for each other. The
    repetition ends if the new estimate of a call does not change the number of calls.

    Returns:
        A row of ``measure_blocks`` without its number, and the expected time of a call, updated.
    """
    parts = division(workload, call_ns, block_ns, piece_ns)
    for _ in range(_RESIZED_AT_MOST):
        row = measure_block(workload, *parts)
        if 2 * row["wall_ns"] >= block_ns:
            break
        call_ns = row["wall_ns"] / row["calls"]
        before, parts = parts, division(workload, call_ns, block_ns, piece_ns)
        if parts == before:
            break
    return row, call_ns


def measure_block(workload: Workload, count: int, pieces: int | None = None) -> dict[str, int]:
    """Time one block after a run of the reference loop; returns a row without its number."""
    yardstick_ns = reference_ns()
    compiles = workload.compile_count()
    collected = collected_ns()
    waits = Waits.now()
    faults, system_ns = usage_of_thread()
    cpu_ns = time.thread_time_ns()
    walls_ns = [workload.run(count) for _ in range(pieces or 1)]
    cpu_after_ns = time.thread_time_ns()
    faults_after, system_after_ns = usage_of_thread()
    wall_ns = sum(walls_ns)
    waited = waits.during(wall_ns)
    more = {} if pieces is None else {"steady_ns": round(statistics.median(walls_ns) * pieces)}
    if collected is not None:
        more["collected_ns"] = (collected_ns() or 0) - collected
    return {
        "calls": count * len(walls_ns),
        "wall_ns": wall_ns,
        "reference_ns": yardstick_ns,
        "minor_faults": faults_after - faults,
        "system_ns": system_after_ns - system_ns,
        "cpu_ns": cpu_after_ns - cpu_ns,
        **waited,
        "compiles": workload.compile_count() - compiles,
        **more,
    }


@operation
def time_blocks(
    session: Session, block_ns: int, blocks: int, budget_ns: int, piece_ns: int | None = None, collections: bool = False
) -> dict[str, Any]:
    """Time blocks of the bare loop, and the other threads of this process meanwhile.

    Args:
        collections: Whether to time what the garbage collector takes, too, from now on.
    """
    if collections:
        watch_collections()
    before_ns = other_threads_ns()
    rows, session.call_ns = measure_blocks(session.workload, session.call_ns, block_ns, blocks, budget_ns, piece_ns)
    return {"rows": rows, "others_ns": other_threads_ns() - before_ns}
