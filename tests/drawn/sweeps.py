"""A drawn sweep, as it is stored."""

from __future__ import annotations

from pathlib import Path

from overhead_lens.captures.directory import write_meta
from overhead_lens.captures.files import CLOCK
from overhead_lens.captures.tables import write_table
from overhead_lens.scenario import Work
from overhead_lens.studies.sweep.stored import SWEEP, Against, SizePoint, SweepMeta
from overhead_lens.subject import Subject


def draw_sweep(folder: Path) -> Path:
    """One variant over ``n`` of 10 and 100: 100 ns whatever the n, and 10 ns for each."""
    folder.mkdir(exist_ok=True)
    of_all = {"process": 0, "variant": "v", "calls": 10, "reference_ns": 1}
    rows = [
        {**of_all, "point": point, "block": block, "wall_ns": 10 * ns}
        for point, ns in enumerate((200, 1_100))
        for block in range(3)
    ]
    meta = SweepMeta(
        subject=Subject("scenario", "drawn", "v", {"n": 10}),
        variants=["v"],
        points=[SizePoint({"n": n}, Work()) for n in (10, 100)],
        swept={"n": [10, 100]},
        against=Against("n", [10, 100]),
    )
    write_table(folder / CLOCK, rows)
    write_meta(folder, SWEEP, meta)
    return folder
