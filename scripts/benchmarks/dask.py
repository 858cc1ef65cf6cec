"""Sixteen traces of 100 MB on one Dask worker and on two, alternating.

    python scripts/bench_dask.py FOLDER [--repeat N]

FOLDER is that of ``bench_analyze.py``, whose 100 MB GPU trace is taken sixteen times under different names. Both clusters are
started beforehand and have loaded the compiled scanner; only the analysis of the sixteen is timed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

from overhead_lens.traces.cluster import analyze_on

COUNT = 16


def main() -> None:
    """Measure and print the ratio."""
    from distributed import LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    model = options.folder / "gpu_100mb.json.gz"
    folder = options.folder / "sixteen"
    folder.mkdir(exist_ok=True)
    paths = [folder / f"rank_{rank}.json.gz" for rank in range(COUNT)]
    for path in paths:
        if not path.exists():
            shutil.copyfile(model, path)
    clusters = {}
    for workers in (1, 2):
        clusters[workers] = LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=60
        )
        list(analyze_on(clusters[workers].scheduler_address, paths[: 2 * workers]))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for number in range(options.repeat):
        for workers in (1, 2) if number % 2 else (2, 1):
            begin = time.perf_counter()
            results = list(analyze_on(clusters[workers].scheduler_address, paths))
            seconds[workers].append(time.perf_counter() - begin)
            assert len(results) == COUNT
    ratios = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
    print(f"one worker {statistics.median(seconds[1]):.2f} s, two {statistics.median(seconds[2]):.2f} s")
    print(
        f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f} over {options.repeat} rounds)"
    )
    for cluster in clusters.values():
        cluster.close()


if __name__ == "__main__":
    main()
