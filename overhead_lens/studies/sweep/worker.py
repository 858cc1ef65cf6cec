"""The sweep instrument: every variant at every size timed in turns, in one process. Runs in the worker.

Every round times one block of each, in an order drawn anew, a run of the reference loop before each, so that what disturbs the
machine for longer than a block disturbs all sizes alike. A block of several calls follows one that is not timed, which brings
the arguments back into the caches.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

from overhead_lens.errors import UsageError
from overhead_lens.instruments.clock.worker import measure_whole_block
from overhead_lens.target import Target
from overhead_lens.worker import workload
from overhead_lens.worker.session import Session, operation

_LEAST_ROUNDS = 3

_SWEEP = "sweep"


class SweepTimer:
    """Workloads of one scenario in this process: loaded and checked first, then warmed up and timed.

    Args:
        target: The scenario file, as JSON values; the variant that it names counts for nothing.
        variants: Names, None for the default one; None for all.
        points: Parameter name to text, of each size.
        swept: Names of the parameters that differ between the points.
        compile_options: Keyword arguments of torch.compile, None to measure eagerly.

    Raises:
        UsageError: The scenario or a parameter is wrong, a swept parameter is no integer, or a check fails.
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
                # Dynamo keeps its entries with a function's code: a fresh one has the entry of its own size only.
                own = scenario if compile_options is None else workload.load_scenario(named)
                self._workloads.append(workload.prepare(own, name, point, compile_options))
                _check_integers(self._workloads[-1].params, swept)
        self._points = len(points)
        self._call_ns: list[float] = []
        self._block_ns = 0

    def describe(self) -> dict[str, Any]:
        """What the metadata says: that of a workload, the ``variants``, and parameters and work of each of the ``points``."""
        about = [workload.describe(each) for each in self._workloads[: self._points]]
        points = [{"params": each["params"], "work": each["work"]} for each in about]
        names = ("scenario", "device", "summary", "default_params", "work_known", "published")
        return {**{name: about[0][name] for name in names}, "variants": self._names, "points": points}

    def warm_up(self, block_ns: int) -> dict[str, Any]:
        """Compile and call each until settled; replies with how many had not ``settled``."""
        found = [workload.warm_up(each) for each in self._workloads]
        self._call_ns, self._block_ns = [each["call_ns"] for each in found], block_ns
        return {"unsettled": sum(not each["settled"] for each in found)}

    def measure(self, rounds: int, budget_ns: int, seed: int) -> list[dict[str, Any]]:
        """Time all of them in turns.

        Args:
            rounds: Blocks of each.
            budget_ns: Time for all; one that has spent its equal share of it is timed no more, once it has three blocks.
            seed: For the order inside the rounds.

        Returns:
            One row per block: ``variant``, ``point`` (position), ``block`` (the round), and what ``clock.py`` measures.
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
    values = {each.name: getattr(params, each.name) for each in dataclasses.fields(params)}
    for name in swept:
        if not isinstance(values[name], int) or isinstance(values[name], bool):
            raise UsageError(f"parameter {name} cannot be swept: it is no integer")


@operation
def load(session: Session, **what: Any) -> dict[str, Any]:
    """Load and check a scenario at several sizes; replies with what the metadata says of it."""
    session.kept[_SWEEP] = sweep = SweepTimer(**what)
    return sweep.describe()


@operation
def warm_up(session: Session, block_ns: int) -> dict[str, Any]:
    """Compile and call every variant at every size until settled."""
    sweep: SweepTimer = session.kept[_SWEEP]
    return sweep.warm_up(block_ns)


@operation
def time_blocks(session: Session, rounds: int, budget_ns: int, seed: int) -> dict[str, Any]:
    """Time every variant at every size in turns."""
    sweep: SweepTimer = session.kept[_SWEEP]
    return {"rows": sweep.measure(rounds, budget_ns, seed)}
