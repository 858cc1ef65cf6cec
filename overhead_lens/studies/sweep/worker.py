"""Times every variant at every size in turns, in one worker process.

A round times one block of every workload in a random order, so that a disturbance longer than a block hits all sizes alike. An
untimed call before a block of several calls brings the arguments back into the caches.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from overhead_lens.errors import UsageError
from overhead_lens.instruments.clock.worker import measure_whole_block
from overhead_lens.target import Target
from overhead_lens.worker import workload
from overhead_lens.worker.session import Session, method, operation

_LEAST_ROUNDS = 3

_SWEEP = "sweep"


class SweepTimer:
    """Workloads of one scenario in this process: loaded and checked, then warmed up and timed; all variants for None.

    Raises:
        UsageError: The scenario or a parameter is wrong, a swept parameter is not an integer, or a check fails.
    """

    def __init__(
        self,
        target: Mapping[str, Any],
        variants: Sequence[str | None] | None,
        points: Sequence[Mapping[str, str]],
        swept: Sequence[str],
        compile_options: Mapping[str, Any] | None,
    ) -> None:
        named = Target.from_json(target)
        scenario = workload.load_scenario(named)
        self._names = list(dict.fromkeys(map(scenario.variant, scenario.variants if variants is None else variants)))
        self._workloads = []
        for name in self._names:
            for point in points:
                # Dynamo keeps cache entries with a function's code: fresh code has the entry of its own size only.
                own = scenario if compile_options is None else workload.load_scenario(named)
                self._workloads.append(workload.prepare(own, name, point, compile_options))
                _check_integers(self._workloads[-1].params, swept)
        self._points = len(points)
        self._call_ns: list[float] = []
        self._block_ns = 0

    def describe(self) -> dict[str, Any]:
        """A workload's metadata, the ``variants``, and parameters and work of the ``points``."""
        workloads = [workload.describe(prepared) for prepared in self._workloads[: self._points]]
        points = [{"params": point["params"], "work": point["work"]} for point in workloads]
        names = ("scenario", "device", "summary", "work_known")
        return {**{name: workloads[0][name] for name in names}, "variants": self._names, "points": points}

    def warm_up(self, block_ns: int) -> int:
        """Compile and call all workloads until settled; returns how many did not settle."""
        replies = [workload.warm_up(prepared) for prepared in self._workloads]
        self._call_ns, self._block_ns = [reply["call_ns"] for reply in replies], block_ns
        return sum(not reply["settled"] for reply in replies)

    def measure(self, rounds: int, budget_ns: int, seed: int) -> list[dict[str, Any]]:
        """Time all workloads in turns, in an order by ``seed``; each stops at its equal share of the budget, after three blocks.

        Returns:
            One row per block: ``variant``, ``point`` (position), ``block`` (round), and the clock's columns.
        """
        draw = random.Random(seed)  # noqa: S311 (an order, no secret)
        share_ns, spent_ns = budget_ns / len(self._workloads), [0] * len(self._workloads)
        rows: list[dict[str, Any]] = []
        for number in range(rounds):
            due = [at for at, spent in enumerate(spent_ns) if number < _LEAST_ROUNDS or spent < share_ns]
            for at in draw.sample(due, len(due)):
                variant, point = divmod(at, self._points)
                row = self._block(at)
                spent_ns[at] += row["wall_ns"]
                rows.append({"variant": self._names[variant], "point": point, "block": number, **row})
        return rows

    def _block(self, at: int) -> dict[str, int]:
        if 2 * self._call_ns[at] < self._block_ns:
            self._workloads[at].run(1)
        row, self._call_ns[at] = measure_whole_block(self._workloads[at], self._call_ns[at], self._block_ns)
        return row


def _check_integers(params: Any, swept: Sequence[str]) -> None:
    for name in swept:
        value = getattr(params, name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise UsageError(f"parameter {name} cannot be swept: it is not an integer")


@operation
def load(session: Session, **arguments: Any) -> dict[str, Any]:
    """Load and check a scenario at several sizes; returns its description."""
    session.state[_SWEEP] = sweep = SweepTimer(**arguments)
    return sweep.describe()


warm_up, time_blocks = method(_SWEEP, SweepTimer.warm_up), method(_SWEEP, SweepTimer.measure)
