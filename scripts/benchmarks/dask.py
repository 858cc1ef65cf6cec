"""Sixteen traces of 100 MB on one Dask worker and on two, alternating.

    python -m scripts.benchmarks.dask FOLDER [--repeat N] [--trace FILE]

FOLDER is that of ``scripts.benchmarks.analyze``, whose 100 MB GPU trace is taken sixteen times under different names. Both
clusters are started beforehand and have loaded the compiled scanner; only the analysis of the sixteen is timed.
"""

from __future__ import annotations

import shutil
import statistics
import time
from contextlib import ExitStack
from pathlib import Path

from overhead_lens.traces.cluster import analyze_on
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="dask",
    question="How much faster do two workers analyze many traces than one?",
    method=(
        "One trace is taken sixteen times under different names. "
        "A Dask cluster of one worker and one of two analyze the sixteen in turns. "
        "The ratio is the median of the rounds."
    ),
    command="python -m scripts.benchmarks.dask FOLDER",
    columns=(
        Column("traces"),
        Column("one worker", "s"),
        Column("two workers", "s"),
        Column("ratio"),
        Column("lowest"),
        Column("highest"),
        Column("rounds"),
    ),
)

COUNT = 16


def main() -> None:
    """Measure, print the ratio and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--trace", type=Path, help="default: FOLDER/gpu_100mb.json.gz")
    options = parser.parse_args()
    paths = copies(options.trace or options.folder / "gpu_100mb.json.gz", options.folder / "sixteen")
    seconds = analyze_in_turns(paths, options.repeat)
    ratios = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
    row: list[Cell] = [
        len(paths),
        *(round(statistics.median(seconds[workers]), 2) for workers in (1, 2)),
        *(round(ratio, 2) for ratio in (statistics.median(ratios), min(ratios), max(ratios))),
        len(ratios),
    ]
    print_heading(CLAIM.columns)
    print_row(row)
    write_result(options.result, CLAIM.answered([row]))


def copies(model: Path, folder: Path) -> list[Path]:
    """The trace under sixteen names."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"rank_{rank}.json.gz" for rank in range(COUNT)]
    for path in paths:
        if not path.exists():
            shutil.copyfile(model, path)
    return paths


def analyze_in_turns(paths: list[Path], repeat: int) -> dict[int, list[float]]:
    """Seconds of each round by number of workers."""
    from distributed import LocalCluster

    seconds: dict[int, list[float]] = {1: [], 2: []}
    with ExitStack() as stack:
        addresses = {}
        for workers in seconds:
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    silence_logs=60,
                )
            )
            addresses[workers] = cluster.scheduler_address
            list(analyze_on(addresses[workers], paths[: 2 * workers]))
        for number in range(repeat):
            for workers in (1, 2) if number % 2 else (2, 1):
                begin = time.perf_counter()
                results = list(analyze_on(addresses[workers], paths))
                seconds[workers].append(time.perf_counter() - begin)
                assert len(results) == len(paths)
    return seconds


if __name__ == "__main__":
    main()
