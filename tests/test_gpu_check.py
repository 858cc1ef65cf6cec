"""``scripts/gpu/gpu_check.sh`` with a stand-in for the program: the table, failed parts, the scrubbed captures."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.results import read_result

ROOT = Path(__file__).parents[1]

STAND_IN = """
import gzip, json, sys
from pathlib import Path
command, *arguments = sys.argv[1:]
device = {"busy_ns": 188_000, "idle_ns": 618_500, "idle_blame": {"python": 18_500, "launch": 600_000}}

def capture(folder, events):
    folder.mkdir(parents=True)
    out = folder.parents[1]
    environment = {"host": "secret", "cpu": "a CPU", "cores": 7, "torch": "2.99", "python": "3.15", "git_commit": 5 * "0123456789"}
    if command == "profile":
        environment["gpu"] = "a GPU"
    meta = {"environment": environment, "command": f"overhead-lens run {out}/training.py", "started": "2030-01-02T03:04:05"}
    (folder / "meta.json").write_text(json.dumps(meta))
    with gzip.open(folder / "kineto.json.gz", "wt") as file:
        json.dump({"traceName": f"{folder}/kineto.json", "traceEvents": events}, file)

if command == "run":
    step = {**device, "launches": 72.0, "launch_median_ns": 5_000}
    document = {"wall": {"ns": 806_500.0}, "device": {"steps": 3, "devices": [step]}}
    Path(arguments[arguments.index("--json-file") + 1]).write_text(json.dumps(document))
    compile(Path(arguments[-1]).read_text(), "training.py", "exec")
    steps = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{at}", "ts": at, "dur": 1} for at in range(12)]
    calls = [{"ph": "X", "cat": "cuda_runtime", "name": "launch", "ts": at, "dur": 1, "args": {"correlation": at}} for at in range(12)]
    # Kernels end long after the steps that launched them.
    work = [{"ph": "X", "cat": "kernel", "name": "k", "ts": 50, "dur": 1, "args": {"stream": 7, "correlation": at}} for at in range(12)]
    capture(Path(arguments[arguments.index("--output") + 1]), [{"ph": "M", "name": "process_name"}, *steps, *calls, *work])
    print("of the program")
elif command == "profile":
    if "reduce-overhead" in arguments:
        sys.exit("overhead-lens: no graphs | here")
    capture(Path(arguments[arguments.index("--output") + 1]), [])
    call = {**device, "launch": {"per_call": 36.0, "median_ns": 4_000}}
    print(json.dumps({"wall": {"ns": 806_500.0}, "device": call if "gelu" not in arguments else None}))
else:
    print("analyzed" if "--json" not in arguments else "{}")
"""


def test_the_table_and_what_is_kept(tmp_path: Path) -> None:
    program = tmp_path / "stand-in"
    program.write_text(f"#!{sys.executable}\n{STAND_IN}")
    program.chmod(0o755)
    out = tmp_path / "out"
    done = subprocess.run(
        [ROOT / "scripts" / "gpu" / "gpu_check.sh", out],
        env={**os.environ, "OVERHEAD_LENS": str(program), "PYTHON": sys.executable},
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    *missing, _, _ = [line for line in done.stdout.splitlines() if not line.startswith("| ")] + [""]
    assert missing == [
        f"{name}-reduce-overhead: not measured: overhead-lens: no graphs | here"
        for name in ("split_stack", "combined", "add1", "gelu")
    ]
    result = read_result(out / "gpu.json")
    figures = (806_500, 188_000, 618_500, "launch", 600_000)
    assert result.rows == (
        ("training", "run", *figures, 72.0, 5_000, None, None),
        ("split_stack", "eager", *figures, 36.0, 4_000, 1_613_000, 188_000),
        ("split_stack", "compiled", *figures, 36.0, 4_000, 645_200, None),
        ("combined", "eager", *figures, 36.0, 4_000, 198_000, 66_000),
        ("combined", "compiled", *figures, 36.0, 4_000, 156_602, 26_000),
        ("add1", "eager", *figures, 36.0, 4_000, None, None),
        ("add1", "compiled", *figures, 36.0, 4_000, None, None),
        ("gelu", "eager", 806_500, *(6 * [None]), None, None),
        ("gelu", "compiled", 806_500, *(6 * [None]), None, None),
    )
    assert (result.machine, result.torch, result.python) == ("a GPU, a CPU, 7 cores", "2.99", "3.15")
    assert (result.measured_on, result.revision) == ("2030-01-02", "0123456")
    assert (out / "table.md").read_text() == done.stdout
    assert sorted(path.name for path in (out / "reference").iterdir()) == ["gpu-call", "gpu-run"]
    meta = json.loads((out / "reference" / "gpu-run" / "meta.json").read_text())
    assert (meta["environment"]["host"], meta["command"]) == ("reference", "overhead-lens run training.py")
    trace = json.loads(gzip.decompress((out / "reference" / "gpu-run" / "kineto.json.gz").read_bytes()))
    assert trace["traceName"] == "kineto.json"
    kept = [(event["name"], event.get("args", {}).get("correlation")) for event in trace["traceEvents"]]
    assert kept == [
        ("process_name", None),
        *((f"ProfilerStep#{at}", None) for at in range(10)),
        *(("launch", at) for at in range(10)),
        *(("k", at) for at in range(10)),
    ]
    assert (out / "analyses" / "add1-eager.txt").read_text() == "analyzed\n"


def test_without_time_the_rest_is_said_to_be_missing(tmp_path: Path) -> None:
    env = {**os.environ, "OVERHEAD_LENS": "/bin/true", "PYTHON": sys.executable, "GPU_CHECK_BUDGET_S": "0"}
    done = subprocess.run(
        [ROOT / "scripts" / "gpu" / "gpu_check.sh", tmp_path / "out"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.stdout.count("not measured: not run: the time was up") == 13


def stand_in_python(folder: Path, *, torch: bool) -> Path:
    """An interpreter that has nothing but the standard library, and a torch without CUDA if asked for."""
    modules = folder / "modules"
    (modules / "torch").mkdir(parents=True)
    init = "class cuda:\n    is_available = staticmethod(lambda: False)\n" if torch else "raise ImportError\n"
    (modules / "torch" / "__init__.py").write_text(init)
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{modules}" exec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


def check_without_cuda(folder: Path, *, torch: bool) -> subprocess.CompletedProcess[str]:
    """Run the check where no NVIDIA driver is to be found."""
    commands = folder / "commands"
    commands.mkdir()
    for name in ("bash", "dirname", "mkdir"):
        (commands / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    python = stand_in_python(folder, torch=torch)
    return subprocess.run(
        [ROOT / "scripts" / "gpu" / "gpu_check.sh", folder / "out"],
        env={"PATH": str(commands), "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.mark.parametrize("torch", [True, False])
def test_without_a_device_it_says_so_and_installs_nothing(tmp_path: Path, torch: bool) -> None:
    if not torch and Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has an NVIDIA driver")
    done = check_without_cuda(tmp_path, torch=torch)
    said = "torch finds no CUDA device here" if torch else "there is no CUDA device here"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"gpu_check: {said}\n")
    assert not (tmp_path / "out" / "venv").exists()


def test_an_earlier_check_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out" / "captures").mkdir(parents=True)
    done = subprocess.run(
        [ROOT / "scripts" / "gpu" / "gpu_check.sh", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 2
    assert done.stderr == f"gpu_check: {tmp_path / 'out'} holds a check already; name another folder\n"
