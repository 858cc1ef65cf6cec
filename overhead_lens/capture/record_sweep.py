"""The recorder of a size sweep: clocks alone, in fresh workers, each of which times every variant at every size in turns."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overhead_lens.capture import directory
from overhead_lens.capture.process import Worker, ask_all
from overhead_lens.capture.record import Effort, Listener, Order
from overhead_lens.capture.record_many import record_many
from overhead_lens.errors import UsageError

BLOCK_NS = 5_000_000

STANDARD = Effort(processes=5, blocks=15, clock_budget_ns=8_000_000_000)
QUICK = Effort(processes=3, blocks=9, clock_budget_ns=4_000_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest(Order):
    """What to sweep; ``params`` are those that stay.

    Attributes:
        variants: Variant names, None for the default one; None for all variants.
        swept: Parameter name to its values; every combination is measured.
    """

    variants: Sequence[str | None] | None
    swept: Mapping[str, Sequence[int]]

    def points(self) -> list[dict[str, str]]:
        """The parameters of each combination, as text."""
        combinations = itertools.product(*self.swept.values())
        return [{**self.params, **dict(zip(self.swept, map(str, values), strict=True))} for values in combinations]


def record_sweep(request: SweepRequest, listener: Listener) -> Path:
    """Record a sweep; returns the new directory.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: A variant could not be timed, or nothing can be written.
    """
    return record_many("sweep", directory.SWEEP_SCHEMA, request, _Sweep(request), listener)


@dataclass(slots=True)
class _Sweep:
    """A sweep while it is recorded; ``unsettled`` counts calls that had not settled after their warm-up."""

    request: SweepRequest
    about: dict[str, Any] = field(default_factory=dict)
    against: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    unsettled: int = 0

    def load(self, workers: Sequence[Worker]) -> None:
        request = self.request
        self.about = ask_all(
            workers,
            "load_sweep",
            path=str(request.path),
            variants=None if request.variants is None else list(request.variants),
            points=request.points(),
            swept=list(request.swept),
            compile_options=request.compile_options,
        )[0]
        self.against = sizes_of(request.swept, self.about)

    def warm_up(self, workers: Sequence[Worker], listener: Listener) -> None:
        listener.step("warming up every size")
        self.unsettled += sum(each["unsettled"] for each in ask_all(workers, "warm_up_sweep", block_ns=BLOCK_NS))

    def measure(self, worker: Worker, process: int) -> None:
        effort = self.request.effort
        timed = worker.ask("time_sweep", rounds=effort.blocks, budget_ns=effort.clock_budget_ns, seed=process)
        self.rows += [{"process": process, **row} for row in timed["rows"]]

    def write(self, folder: Path) -> dict[str, Any]:
        request = self.request
        directory.write_blocks(folder, self.rows)
        return {
            **self.about,
            "swept": {name: list(values) for name, values in request.swept.items()},
            "against": self.against,
            "unsettled": self.unsettled,
            "compile": request.compile_options is not None,
            "compile_options": request.compile_options,
            "device": str(self.about["points"][0]["params"].get("device", "cpu")),
        }


def sizes_of(swept: Mapping[str, Sequence[int]], about: Mapping[str, Any]) -> dict[str, Any]:
    """The ``name`` and the ``sizes`` of what time is fitted against: the parameter, or the work that several of them make.

    Raises:
        UsageError: Several parameters are swept and the scenario does not say what work they make.
    """
    points = about["points"]
    if len(swept) == 1:
        (name,) = swept
        return {"name": name, "sizes": [point["params"][name] for point in points]}
    for name in ("bytes", "flops"):
        sizes = [point["work"][name] for point in points]
        if about["work_known"] and min(sizes) > 0 and len(set(sizes)) > 1:
            return {"name": name, "sizes": sizes}
    raise UsageError(
        f"scenario {about['scenario']} does not say what work {' and '.join(swept)} make: sweep one parameter alone"
    )
