"""Do captures of the same thing agree? Profile one target many times and count overlapping intervals.

    python scripts/bench_repeat.py FOLDER [COUNT] [TARGET ...options of profile]

Captures go to FOLDER/0, FOLDER/1, ... and are kept; those already there are not made again. For each category: the spread of
the estimates, the share of pairs of captures (all pairs, and consecutive ones) whose 95 % intervals overlap, and the coverage:
the share of captures whose interval contains the value of all captures pooled (the mean of their estimates).
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any


def capture(folder: Path, number: int, target: list[str]) -> dict[str, Any]:
    """The breakdown of one capture."""
    path = folder / str(number)
    tool = [sys.executable, "-m", "overhead_lens"]
    command = (
        [*tool, "report", str(path)] if (path / "meta.json").exists() else [*tool, "profile", *target, "-o", str(path)]
    )
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def overlap(left: list[float], right: list[float]) -> bool:
    """Whether two intervals meet."""
    return left[0] <= right[1] and right[0] <= left[1]


def main(folder: Path, count: int, target: list[str]) -> None:
    """Make or read the captures and print the table."""
    documents = []
    for number in range(count):
        documents.append(capture(folder, number, target))
        print(
            f"capture {number}: {documents[-1]['wall']['ns']:.0f} ns {documents[-1]['wall']['ci95_ns']}",
            file=sys.stderr,
            flush=True,
        )
    rows = {"wall": [(each["wall"]["ns"], each["wall"]["ci95_ns"]) for each in documents]}
    for position, category in enumerate(documents[0]["host"]):
        rows[category["category"]] = [
            (each["host"][position]["ns"], each["host"][position]["ci95_ns"]) for each in documents
        ]
    print(f"{' '.join(target)}: {count} captures")
    print("| category | median ns | lowest | highest | pairs that overlap | consecutive pairs | contain pooled |")
    print("|---|---|---|---|---|---|---|")
    met, held = [], []
    for name, seen in rows.items():
        values = [value for value, _ in seen]
        if max(values) == 0:
            continue
        pairs = [overlap(a, b) for (_, a), (_, b) in itertools.combinations(seen, 2)]
        neighbours = [overlap(a, b) for (_, a), (_, b) in itertools.pairwise(seen)]
        pooled = statistics.fmean(values)
        covered = [low <= pooled <= high for _, (low, high) in seen]
        held += covered if name != "wall" else []
        met += pairs if name != "wall" else []
        cells = [statistics.median(values), min(values), max(values)]
        shares = [statistics.fmean(pairs), statistics.fmean(neighbours), statistics.fmean(covered)]
        print(
            f"| {name} | {' | '.join(f'{cell:.0f}' for cell in cells)} | {' | '.join(f'{share:.1%}' for share in shares)} |"
        )
    print(f"all categories: {statistics.fmean(met):.1%} of {len(met)} pairs overlap")
    print(f"{statistics.fmean(held):.1%} of {len(held)} intervals contain the pooled value")


if __name__ == "__main__":
    rest = sys.argv[3:] or ["add1"]
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20, rest)
