"""Error rate and power of the change points, and the time that a history of many captures takes.

    python scripts/bench_history.py [--histories 1000] [--captures 1000]

Histories are drawn (seeds 0, 1, ...): five series of which each capture scatters by 2 % (normal, or Student's t with three
degrees of freedom) and states that error; nothing changes, or one series rises in the middle. Captures are drawn on disk in a
temporary folder, with a cache folder of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np

from overhead_lens.captures.directory import write_clock, write_meta, write_stacks
from overhead_lens.stats.change_points import find_cuts

_SCATTER = 0.02
_LEVELS_NS = np.array([2_000.0, 900.0, 600.0, 400.0, 100.0])
_ROW = {"calls": 5, "reference_ns": 700_000, "minor_faults": 1, "system_ns": 0, "compiles": 0}
_STACK = "main (worker.py:1);measured_loop (overhead_lens/worker/loop.py:4);{frame} {count}"


def draw(seed: int, count: int, step: float, *, heavy: bool) -> tuple[np.ndarray, np.ndarray]:
    """Series and their errors, in ns; the second series rises by ``step`` standard deviations in the middle."""
    random = np.random.default_rng(seed)
    noise = random.standard_t(3, (5, count)) if heavy else random.normal(size=(5, count))
    noise[1, count // 2 :] += step
    errors = np.repeat(_LEVELS_NS[:, None] * _SCATTER, count, axis=1)
    return _LEVELS_NS[:, None] + errors * noise, errors


def error_rates(histories: int) -> list[str]:
    """Rows of a Markdown table."""
    rows = []
    for count in (12, 30):
        for heavy in (False, True):
            for step in (0.0, 3.0, 5.0):
                found = [find_cuts(*draw(seed, count, step, heavy=heavy)) for seed in range(histories)]
                any_cut = sum(bool(cuts) for cuts in found)
                exact = sum(any(cut.position == count // 2 for cut in cuts) for cuts in found)
                more = sum(len(cuts) > 1 for cuts in found)
                noise = "t, 3 degrees" if heavy else "normal"
                rows.append(f"| {count} | {noise} | {step:g} | {any_cut} | {exact} | {more} |")
    return rows


def draw_captures(folder: Path, count: int) -> None:
    """Complete captures of three processes whose guard takes 40 % longer from the middle on."""
    random = np.random.default_rng(0)
    begun = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for number in range(count):
        path = folder / f"c{number:05d}"
        path.mkdir()
        shift = 0.4 if number >= count // 2 else 0.0
        call_ns = 2_000 * (1 + random.normal(0, _SCATTER)) + 500 * shift
        blocks = [
            {**_ROW, "process": process, "block": block, "wall_ns": round(5 * call_ns * (1 + random.normal(0, 0.01)))}
            for process in range(3)
            for block in range(15)
        ]
        write_clock(path, blocks)
        guard = round(random.normal(250 * (1 + shift), 10))
        stacks = (
            ("user (user.py:1)", 750),
            ("torch::dynamo::(anonymous namespace)::RootGuardManager::check_nopybind (libtorch_python.so)", guard),
        )
        write_stacks(path, ["\n".join(_STACK.format(frame=frame, count=n) for frame, n in stacks)] * 3)
        environment = {
            "host": "h",
            "cpu": "c",
            "torch": "2.13.0",
            "python": "3.11",
            "threads": 2,
            "git_commit": f"{number:010x}{0:030x}",
        }
        write_meta(
            path, {**_META, "environment": environment, "started": (begun + timedelta(hours=number)).isoformat()}
        )


_META = {
    "scenario": "drawn", "variant": "drawn", "compile": True, "compile_options": {}, "device": "cpu", "params": {"size": 10},
    "work": {"units": 1, "flops": 0, "bytes": 0}, "trace": {"reason": "not recorded"},
    "samples": {"samples": 3000, "errors": 0, "reason": None}, "guards": None, "peaks": {}, "published": [], "warnings": [],
}  # fmt: skip


def time_history(count: int) -> list[str]:
    """Lines on how long ``overhead-lens history`` takes, analyzing and from its cache."""
    lines = []
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text, "captures")
        folder.mkdir()
        draw_captures(folder, count)
        command = [sys.executable, "-m", "overhead_lens", "history", str(folder), "--json"]
        for what in ("analyzed", "from the cache", "from the cache"):
            started = time.perf_counter()
            done = subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": text}, capture_output=True, check=True)
            seconds = time.perf_counter() - started
            (series,) = json.loads(done.stdout)["series"]
            found = [change["sentence"] for segment in series["segments"] for change in segment["change_points"]]
            lines.append(f"{count:,} captures, {what}: {seconds:.1f} s; {'; '.join(found)}")
    return lines


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--captures", type=int, default=1_000)
    options = parser.parse_args()
    print(f"of {options.histories} drawn histories of five series:\n")
    print("| captures | noise | step, in its sd | any change point | one at the right place | more than one |")
    print("|---|---|---|---|---|---|")
    print("\n".join(error_rates(options.histories)))
    print()
    print("\n".join(time_history(options.captures)))


if __name__ == "__main__":
    main()
