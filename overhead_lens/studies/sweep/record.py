"""Records a size sweep: every fresh worker times all variants at all sizes in turns."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct

from overhead_lens.captures.files import CLOCK
from overhead_lens.captures.tables import write_table
from overhead_lens.errors import UsageError
from overhead_lens.machine.operations import Operation
from overhead_lens.machine.process import Worker, ask_all
from overhead_lens.machine.request import Effort, Listener, Order
from overhead_lens.recorder.batch import record_many
from overhead_lens.studies.sweep.stored import SWEEP, Against, SizePoint, SweepMeta
from overhead_lens.subject import Subject

BLOCK_NS = 5_000_000

STANDARD = Effort(processes=5, blocks=15, clock_budget_ns=8_000_000_000)
QUICK = Effort(processes=3, blocks=9, clock_budget_ns=4_000_000_000)


class Loaded(Struct, frozen=True):
    """A worker's description of the scenario, its variants and its points."""

    scenario: str
    device: str
    summary: str
    work_known: bool
    variants: list[str]
    points: list[SizePoint]


LOAD = Operation("studies.sweep.worker:load", Loaded)
WARM_UP = Operation("studies.sweep.worker:warm_up", int)
TIME_BLOCKS: Operation[list[dict[str, int | str]]] = Operation(
    "studies.sweep.worker:time_blocks", list[dict[str, int | str]]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest(Order):
    """A sweep to record; ``params`` are the parameters that stay.

    Attributes:
        variants: Variant names, None for the default one; None for all variants.
    """

    variants: Sequence[str | None] | None
    swept: Mapping[str, Sequence[int]]

    def points(self) -> list[dict[str, str]]:
        """The parameters of each combination, as text."""
        combinations = itertools.product(*self.swept.values())
        return [{**self.params, **dict(zip(self.swept, map(str, values), strict=True))} for values in combinations]


def record_sweep(request: SweepRequest, listener: Listener) -> Path:
    """Record a sweep into a new directory.

    Raises:
        UsageError: The scenario, a parameter or the output place is wrong.
        MeasurementError: A variant could not be timed, or nothing can be written.
    """
    return record_many(SWEEP, request, _Sweep(request), listener)


@dataclass(slots=True)
class _Sweep:
    """A sweep while it is recorded; ``unsettled`` counts calls that had not settled after their warm-up."""

    request: SweepRequest
    loaded: Loaded | None = None
    against: Against | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    unsettled: int = 0

    def load(self, workers: Sequence[Worker]) -> None:
        request = self.request
        self.loaded = ask_all(
            workers,
            LOAD,
            target=request.target.to_json(),
            variants=None if request.variants is None else list(request.variants),
            points=request.points(),
            swept=list(request.swept),
            compile_options=request.compile_options,
        )[0]
        self.against = sizes_of(request.swept, self.loaded)

    def warm_up(self, workers: Sequence[Worker], listener: Listener) -> None:
        listener.step("warming up every size")
        self.unsettled += sum(ask_all(workers, WARM_UP, block_ns=BLOCK_NS))

    def measure(self, worker: Worker, process: int) -> None:
        effort = self.request.effort
        rows = worker.ask(TIME_BLOCKS, rounds=effort.blocks, budget_ns=effort.clock_budget_ns, seed=process)
        self.rows += [{"process": process, **row} for row in rows]

    def write(self, folder: Path, provenance: Mapping[str, Any]) -> SweepMeta:
        request, loaded, against = self.request, self.loaded, self.against
        assert loaded is not None
        assert against is not None
        write_table(folder / CLOCK, self.rows)
        params = loaded.points[0].params
        variant = loaded.variants[0] if len(loaded.variants) == 1 else ""
        return SweepMeta(
            subject=Subject("scenario", loaded.scenario, variant, params, request.compiles, loaded.device),
            variants=loaded.variants,
            points=loaded.points,
            swept={name: list(values) for name, values in request.swept.items()},
            against=against,
            unsettled=self.unsettled,
            summary=loaded.summary,
            work_known=loaded.work_known,
            compile_options=request.compile_options,
            **provenance,
        )


def sizes_of(swept: Mapping[str, Sequence[int]], loaded: Loaded) -> Against:
    """The sizes of the points: the swept parameter, or the work of several swept parameters.

    Raises:
        UsageError: Several parameters are swept and the scenario does not know its work.
    """
    if len(swept) == 1:
        (name,) = swept
        return Against(name, [point.params[name] for point in loaded.points])
    for name in ("bytes", "flops"):
        sizes = [getattr(point.work, name) for point in loaded.points]
        if loaded.work_known and min(sizes) > 0 and len(set(sizes)) > 1:
            return Against(name, sizes)
    raise UsageError(
        f"scenario {loaded.scenario} does not define the work of {' and '.join(swept)} together: sweep one parameter at a time"
    )
