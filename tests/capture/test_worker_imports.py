"""The worker runs under interpreters that have torch and nothing else of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "overhead_lens"

SCRIPT = """
import json, subprocess, sys
banned = {"numpy", "pandas", "pyarrow", "numba", "rich", "typer", "perfetto", "tomllib"}
sys.path.insert(0, SCENARIOS)
before = set(sys.modules)
import runpy
namespace = runpy.run_path(WORKER)
namespace["_import_package"]()
from overhead_lens.capture import ablation, calibration, catalog, clock, generated, guards, loop, profiler, runtime, rungs, spin, steps, workload, peaks, sweep
import overhead_lens.scenario
import torch
ours = {name for name in sys.modules if name.startswith("overhead_lens")}
print(sorted(name for name in ours if any(each in name for each in ("categories", "cli", "report", "analysis"))))
print(sorted(banned & {name.partition(".")[0] for name in set(sys.modules) - before} - torch_needs()))
"""


def test_worker_side_modules_import_torch_and_stdlib_only() -> None:
    # What torch itself imports is torch's business: it is found in a process of its own.
    needs = "import sys, torch, torch.profiler; print(sorted({n.partition('.')[0] for n in sys.modules}))"
    torch_needs = subprocess.run([sys.executable, "-c", needs], capture_output=True, text=True, check=True).stdout
    script = SCRIPT.replace("SCENARIOS", repr(str(PACKAGE.parent / "scenarios"))).replace(
        "WORKER", repr(str(PACKAGE / "capture" / "worker.py"))
    )
    script = script.replace("torch_needs()", f"set({torch_needs.strip()})")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
