"""Clock: blocks of the bare loop, in every timed process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from overhead_lens.captures.directory import Capture
from overhead_lens.captures.files import CLOCK
from overhead_lens.captures.tables import BLOCK_COLUMNS, read_table, write_table
from overhead_lens.instruments.instrument import Instrument, Turn, When
from overhead_lens.machine.operations import Operation

if TYPE_CHECKING:
    import pandas as pd

BLOCK_NS = 20_000_000
_NOT_IN_ALL = {"steady_ns": 0, "delayed_ns": 0, "contended_ns": 0}

# Other threads that run for a smaller share of the time are not the call's.
_OTHERS_SHARE = 0.1


class Blocks(Struct, frozen=True):
    """Blocks as ``worker.measure_blocks`` returns them, and CPU time of the process's other threads meanwhile."""

    rows: list[dict[str, int]]
    others_ns: int

    @property
    def use_threads(self) -> bool:
        """Whether the call runs on several threads."""
        return self.others_ns > _OTHERS_SHARE * sum(row["wall_ns"] for row in self.rows)


TIME_BLOCKS = Operation("instruments.clock.worker:time_blocks", Blocks)


class Clock(Instrument):
    """Timed blocks of all processes.

    Attributes:
        use_threads: By process, whether its calls run on several threads.
        block_ns, piece_ns: About how long a block is, and a piece of one if it is timed in pieces.
    """

    name = "clock"
    when = When.TIMED

    def __init__(self, block_ns: int = BLOCK_NS, piece_ns: int | None = None) -> None:
        self.block_ns = block_ns
        self.piece_ns = piece_ns
        self.rows: list[dict[str, int]] = []
        self.use_threads: dict[int, bool] = {}

    def measure(self, turn: Turn) -> None:
        """Time the blocks of a process."""
        effort = turn.request.effort
        timed = turn.present_worker.ask(
            TIME_BLOCKS, block_ns=self.block_ns, blocks=effort.blocks, budget_ns=effort.clock_budget_ns
        )
        self.rows += [{"process": turn.process, **row} for row in timed.rows]
        self.use_threads[turn.process] = timed.use_threads

    def rows_of(self, process: int) -> list[dict[str, int]]:
        """Blocks of one process."""
        return [row for row in self.rows if row["process"] == process]

    def write(self, folder: Path) -> Any:
        """Write ``clock.parquet``."""
        write_table(folder / CLOCK, self.rows)
        pieces = {} if self.piece_ns is None else {"piece_ns": self.piece_ns}
        return {"block_ns": self.block_ns, **pieces}


def read_blocks(capture: Capture) -> pd.DataFrame:
    """All timed blocks, with the columns of ``files.py``.

    Raises:
        UsageError: The file is missing or damaged.
    """
    try:
        return read_table(capture.path / CLOCK, {**BLOCK_COLUMNS, "minor_faults": 0}, optional=_NOT_IN_ALL)
    except (OSError, ValueError) as error:
        raise capture.damaged(error) from error
