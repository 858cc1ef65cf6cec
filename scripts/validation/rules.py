"""How much of each scenario's wall time no rule claims: every variant, eager and compiled, without and with grad.

    python scripts/coverage_of_rules.py FOLDER

Profiles with --quick into FOLDER (captures that are there already are only analyzed again) and prints a Markdown table.
The compiled loop of linear_loop runs 100 vectors: compiling the unrolled loop over 10,000 takes five minutes per process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TORCH = ["add1", "linear_loop:loop", "linear_loop:batched", "gelu", "split_stack:split_stack", "split_stack:combined"]
TORCH_NO_GRAD = ["sum_elements:torch", "row_col_sum:torch_rows", "row_col_sum:torch_cols"]
OTHERS = [
    *("elementwise_sqrt:loop", "elementwise_sqrt:whole", "sum_elements:numpy", "sum_elements:numpy_numba"),
    *(
        "sum_elements:numba",
        "sum_elements:builtin",
        "sum_elements:python",
        "row_col_sum:numpy_rows",
        "row_col_sum:numpy_cols",
    ),
]


def runs() -> list[list[str]]:
    """The command lines of all runs."""
    eager = [[target] for target in (*TORCH, *TORCH_NO_GRAD, *OTHERS)]
    compiled = [[target, "--compile", *_fewer(target)] for target in (*TORCH, *TORCH_NO_GRAD)]
    grad = [[*run, "-p", "requires_grad=true"] for run in (*eager, *compiled) if run[0] in TORCH]
    return [*eager, *compiled, *grad]


def _fewer(target: str) -> list[str]:
    return ["-p", "vectors=100"] if target == "linear_loop:loop" else []


def main(folder: Path) -> None:
    """Print the table, worst first."""
    rows = []
    for run in runs():
        path = folder / "-".join(run).replace(":", "-").replace("--", "").replace("=", "")
        tool = [sys.executable, "-m", "overhead_lens"]
        made = (path / "meta.json").exists()
        command = [*tool, "report", str(path)] if made else [*tool, "profile", *run, "--quick", "-o", str(path)]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
        if done.returncode:
            rows.append((1.0, f"| `{' '.join(run)}` | failed: {done.stderr.strip()} | |"))
            continue
        document = json.loads(done.stdout)
        host = {each["category"]: each["share"] for each in document["host"]}
        first = max(host, key=lambda name: host[name])
        wall = f"{document['wall']['ns'] / 1e3:,.2f}"
        rows.append(
            (
                host["unattributed"],
                f"| `{' '.join(run)}` | {wall} | {host['unattributed']:.2%} | {first} {host[first]:.0%} |",
            )
        )
        print(rows[-1][1], file=sys.stderr, flush=True)
    print("| run | wall, µs per call | unattributed | largest category |\n|---|---|---|---|")
    for _, row in sorted(rows, reverse=True):
        print(row)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
