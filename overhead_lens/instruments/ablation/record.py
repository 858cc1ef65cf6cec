"""Ablation: a compiled call with one thing after another left out, in every timed process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import ABLATION
from overhead_lens.captures.tables import BLOCK_COLUMNS, read_table, write_table
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.machine.operations import Nothing, Operation

if TYPE_CHECKING:
    import pandas as pd

# Rungs that the cross-checks of a compiled call compare.
CHECK_RUNGS = ("compiled", "guards_filtered", "generated_code", "allocation_hoisted", "kernel_binding")
_BLOCK_NS = 5_000_000
# A round takes as long as two blocks of the clock.
_ROUNDS_PER_BLOCK = 0.6
_BUDGET_NS = 1_000_000_000


class Ablated(Struct, frozen=True):
    """Reasons why rungs were not timed, by name."""

    reasons: dict[str, str] = {}


class RungTimes(Struct, frozen=True):
    """Timed blocks of rungs, and by name the reason if a rung was not measured, else None."""

    rows: list[dict[str, int | str]]
    reasons: Mapping[str, str | None]


PREPARE = Operation("instruments.ablation.worker:prepare_rungs", Nothing)
TIME_RUNGS = Operation("instruments.ablation.worker:time_rungs", RungTimes)


class Ablate(Instrument):
    """Timed blocks of the cross-checks' rungs, and why one was not timed."""

    name = "ablation"
    when = When.CHANGED

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.reasons: dict[str, str] = {}

    def measure(self, turn: Turn) -> None:
        """Time the rungs of a compiled call."""
        if not turn.recording.compiles:
            return
        worker, process = turn.present_worker, turn.process
        rounds = round(_ROUNDS_PER_BLOCK * turn.request.effort.blocks)
        try:
            worker.ask(PREPARE, names=list(CHECK_RUNGS))
            timed = worker.ask(TIME_RUNGS, block_ns=_BLOCK_NS, rounds=rounds, budget_ns=_BUDGET_NS, seed=process)
        except MeasurementError as error:
            turn.warn("no ablation", error)
            return
        self.rows += [{"process": process, **row} for row in timed.rows]
        if process == 0:
            self.reasons = {name: reason for name, reason in timed.reasons.items() if reason}

    def write(self, folder: Path) -> Any:
        """Write ``ablation.parquet``, if there are rows."""
        if self.rows:
            write_table(folder / ABLATION, self.rows)
        return Ablated(self.reasons) if self.rows or self.reasons else None


def read_ablation(capture: Capture) -> pd.DataFrame | None:
    """Blocks of the rungs of a compiled call; None if there is no file.

    Raises:
        UsageError: It is damaged.
    """
    path = capture.existing(ABLATION)
    if path is None:
        return None
    try:
        return read_rungs(path)
    except (OSError, ValueError) as error:
        raise capture.damaged(error) from error


def read_rungs(path: Path, others: Iterable[str] = ()) -> pd.DataFrame:
    """Blocks: ``process``, ``rung``, ``block``, ``calls``, ``wall_ns``, ``reference_ns`` and the columns ``others``."""
    return read_table(path, BLOCK_COLUMNS, ("rung", *others))
