"""How often does a 95 % interval contain the truth? Captures drawn from a recorded pool of processes.

    python scripts/bench_coverage.py FOLDER [--processes N] [--draws N]

FOLDER holds captures of one thing, as ``bench_repeat.py`` leaves them. Their processes are pooled; a capture of N of them is
drawn without repetition, again and again, and its budget made by the product. The truth is the budget of all of them together.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from overhead_lens.cli.store import stacks_per_process

from overhead_lens.budget.make import Evidence, make_budget
from overhead_lens.budget.model import Breakdown
from overhead_lens.captures.directory import read_capture
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import default_classifier


def main() -> None:
    """Pool, draw, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1_000)
    options = parser.parse_args()
    clocks, stacks, meta = [], [], {}
    for path in sorted(options.folder.iterdir()):
        capture = read_capture(path)
        meta = {**capture.meta, "warnings": []}
        clocks += [rows for _, rows in capture.clock.groupby("process", sort=True)]
        stacks += stacks_per_process(capture.folded)
    truth = budget(meta, clocks, stacks, list(range(len(clocks))))
    random = np.random.default_rng(7)
    held: defaultdict[str, list[bool]] = defaultdict(list)
    for _ in range(options.draws):
        drawn = budget(meta, clocks, stacks, random.choice(len(clocks), options.processes, replace=False).tolist())
        held["wall"].append(drawn.wall.ci95_ns[0] <= truth.wall.ns <= drawn.wall.ci95_ns[1])
        for true, seen in zip(truth.host, drawn.host, strict=True):
            if true.ns:
                held[true.category].append(seen.ci95_ns[0] <= true.ns <= seen.ci95_ns[1])
    print(f"{options.draws} captures of {options.processes} of {len(clocks)} processes")
    print("| | all of them, ns | intervals that contain it |\n|---|---|---|")
    for name, each in held.items():
        ns = truth.wall.ns if name == "wall" else truth.category(name).ns
        print(f"| {name} | {ns} | {np.mean(each):.1%} |")


def budget(
    meta: dict[str, object], clocks: list[pd.DataFrame], stacks: list[list[Stack]], chosen: list[int]
) -> Breakdown:
    """The budget of some of the processes."""
    clock = pd.concat([clocks[at].assign(process=number) for number, at in enumerate(chosen)], ignore_index=True)
    evidence = Evidence(meta, clock, [stacks[at] for at in chosen], None, "drawn")
    return make_budget(evidence, default_classifier().fitted(evidence.stacks)).breakdown


if __name__ == "__main__":
    main()
