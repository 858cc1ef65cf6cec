"""Times the rungs of a call in turns, in one process. Runs in the worker.

Every round times one block of each rung, in a new random order, after a run of the reference loop. Rungs are compared within
rounds: what disturbs the machine for longer than a block disturbs them alike.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from overhead_lens.errors import MeasurementError, first_line
from overhead_lens.instruments.ablation.rungs import WARM_HEAP, RungCall, build_rungs, keep_heap
from overhead_lens.worker.loop import reference_ns, run_ns
from overhead_lens.worker.session import Session, method, operation
from overhead_lens.worker.usage import Waits, usage_of_thread
from overhead_lens.worker.workload import Workload, calls_within

_WARM_UP_NS = 60_000_000
# Untimed calls at the start of a block, as a share of the timed calls.
_SETTLING_SHARE = 0.2

_LADDER = "ladder"


@contextmanager
def _noting(reasons: dict[str, str | None], rung: RungCall) -> Iterator[None]:
    """Store the failure of a rung as its reason."""
    try:
        yield
    except Exception as error:
        reasons[rung.name] = f"it fails when repeated: {first_line(error)}"[:300]


class RungTimer:
    """Rungs of one call in this process, which have been called.

    Args:
        warm: Those that are timed while malloc keeps its pages; they come last, since it cannot be put back as it was.
        synchronize: Waits for the device; None on the CPU.
    """

    def __init__(
        self, usual: Sequence[RungCall], warm: Sequence[RungCall], synchronize: Callable[[], None] | None
    ) -> None:
        self._usual, self._warm, self._synchronize = usual, warm, synchronize
        gc.collect()
        gc.freeze()

    @classmethod
    def of(cls, workload: Workload, names: Sequence[str]) -> RungTimer:
        """Rungs of ``rungs.py`` by their names, which are compiled here."""
        usual = build_rungs(workload, [name for name in names if not name.endswith(WARM_HEAP)])
        warm = build_rungs(workload, [name for name in names if name.endswith(WARM_HEAP)])
        return cls(usual, warm, workload.synchronize)

    def measure(self, block_ns: int, rounds: int, budget_ns: int, seed: int) -> dict[str, Any]:
        """Time the rungs in turns.

        Args:
            rounds: Blocks per rung.
            budget_ns: No further round starts after this much time, once there are three.
            seed: For the order inside the rounds.

        Returns:
            The fields of ``record.RungTimes``; ``rows``: ``rung``, ``block`` (the round), ``calls``, ``wall_ns``,
            ``reference_ns``, ``minor_faults``.
        """
        draw = random.Random(seed)  # noqa: S311 (an order, no secret)
        reasons = {rung.name: rung.reason for rung in (*self._usual, *self._warm)}
        rows = self._rounds(self._usual, block_ns, rounds, budget_ns, draw, reasons)
        if self._warm:
            try:
                keep_heap()
                rows += self._rounds(self._warm, block_ns, rounds, budget_ns, draw, reasons)
            except MeasurementError as error:
                reasons.update({rung.name: str(error) for rung in self._warm})
        return {"reasons": reasons, "rows": rows}

    def _rounds(
        self,
        rungs: Sequence[RungCall],
        block_ns: int,
        rounds: int,
        budget_ns: int,
        draw: random.Random,
        reasons: dict[str, str | None],
    ) -> list[dict[str, Any]]:
        """Rows of the rounds; a rung that fails when repeated is left out and gets its reason."""
        counts: dict[str, int] = {}
        for rung in rungs:
            if rung.call is not None:
                with _noting(reasons, rung):
                    counts[rung.name] = self._settled_calls(rung, block_ns)
        timed = [rung for rung in rungs if rung.name in counts]
        rows: list[dict[str, Any]] = []
        started = time.perf_counter_ns()
        for number in range(rounds):
            if number >= 3 and time.perf_counter_ns() - started > budget_ns:
                break
            for rung in draw.sample(timed, len(timed)):
                if reasons[rung.name] is None:
                    with _noting(reasons, rung):
                        rows.append({"rung": rung.name, "block": number, **self._block(rung, counts[rung.name])})
        return [row for row in rows if reasons[row["rung"]] is None]

    def _settled_calls(self, rung: RungCall, block_ns: int) -> int:
        """Calls per block, by the fastest batch of a warm-up."""
        spent_ns, count, fastest_ns = 0, 1, float("inf")
        with rung.context():
            while spent_ns < _WARM_UP_NS:
                elapsed_ns = self._run(rung, count)
                spent_ns += elapsed_ns
                fastest_ns = min(fastest_ns, elapsed_ns / count)
                count = max(count, calls_within(fastest_ns, block_ns))
        return calls_within(fastest_ns, block_ns)

    def _block(self, rung: RungCall, count: int) -> dict[str, int]:
        yardstick_ns = reference_ns()
        with rung.context():
            # The rungs before have displaced its code and data from the caches.
            self._run(rung, max(1, round(_SETTLING_SHARE * count)))
            waits = Waits.now()
            faults, _ = usage_of_thread()
            wall_ns = self._run(rung, count)
            faults = usage_of_thread()[0] - faults
            wall_ns -= waits.during(wall_ns)["delayed_ns"]
        return {"calls": count, "wall_ns": wall_ns, "reference_ns": yardstick_ns, "minor_faults": faults}

    def _run(self, rung: RungCall, count: int) -> int:
        assert rung.call is not None
        return run_ns(rung.call, rung.args, count, self._synchronize, rung.keywords)


@operation
def prepare_rungs(session: Session, names: Sequence[str]) -> dict[str, Any]:
    """Build the rungs of the call."""
    session.state[_LADDER] = RungTimer.of(session.workload, names)
    return {}


time_rungs = method(_LADDER, RungTimer.measure)
