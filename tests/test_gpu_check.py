"""``scripts/gpu_check.sh`` with a stand-in for the program: the table, failed parts, the scrubbed captures."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

STAND_IN = """
import gzip, json, sys
from pathlib import Path
command, *arguments = sys.argv[1:]
if command == "profile":
    if "reduce-overhead" in arguments:
        sys.exit("overhead-lens: no graphs | here")
    folder = Path(arguments[arguments.index("--output") + 1])
    folder.mkdir(parents=True)
    trace = {"schemaVersion": 1, "host_name": "secret", "traceName": "/home/secret", "traceEvents": [{"ph": "X", "name": "k"}]}
    with gzip.open(folder / "kineto.json.gz", "wt") as file:
        json.dump(trace, file)
    device = {"busy_ns": 188_000, "idle_ns": 618_500, "idle_blame": {"python": 18_500, "launch": 600_000},
              "events_per_call": 36.0, "launch": {"median_ns": 4_000}}
    print(json.dumps({"wall": {"ns": 806_500.0}, "device": device}))
else:
    print("analyzed" if "--json" not in arguments else "{}")
"""


def test_the_table_and_what_is_kept(tmp_path: Path) -> None:
    program = tmp_path / "stand-in"
    program.write_text(f"#!{sys.executable}\n{STAND_IN}")
    program.chmod(0o755)
    out = tmp_path / "out"
    done = subprocess.run(
        [ROOT / "scripts" / "gpu_check.sh", out],
        env={**os.environ, "OVERHEAD_LENS": str(program), "PYTHON": sys.executable},
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 12
    assert rows[0] == [
        "split_stack, eager", "806.5 µs", "188.0 µs (23%)", "618.5 µs", "launch 600.0 µs", "36", "4.0 µs",
        "1,613.0 µs (0.50x)", "188.0 µs (1.00x)",
    ]  # fmt: skip
    assert rows[2][:2] == ["split_stack, reduce-overhead", "not measured: overhead-lens: no graphs / here"]
    assert (out / "table.md").read_text() == done.stdout
    with gzip.open(out / "reference" / "gelu-compiled.json.gz") as file:
        assert json.load(file) == {"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "k"}]}
    assert (out / "analyses" / "add1-eager.txt").read_text() == "analyzed\n"


def test_without_time_the_rest_is_said_to_be_missing(tmp_path: Path) -> None:
    env = {**os.environ, "OVERHEAD_LENS": "/bin/true", "PYTHON": sys.executable, "GPU_CHECK_BUDGET_S": "0"}
    done = subprocess.run(
        [ROOT / "scripts" / "gpu_check.sh", tmp_path / "out"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.count("not measured: not run: the time was up") == 12
