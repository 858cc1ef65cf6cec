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

ROOT = Path(__file__).parents[1]

STAND_IN = """
import gzip, json, sys
from pathlib import Path
command, *arguments = sys.argv[1:]
device = {"busy_ns": 188_000, "idle_ns": 618_500, "idle_blame": {"python": 18_500, "launch": 600_000}}
if command == "run":
    step = {**device, "events": 72.0, "launch_median_ns": 5_000}
    document = {"wall": {"ns": 806_500.0}, "device": {"steps": 3, "devices": [step]}}
    Path(arguments[arguments.index("--json-file") + 1]).write_text(json.dumps(document))
    compile(Path(arguments[-1]).read_text(), "training.py", "exec")
    print("of the program")
elif command == "profile":
    if "reduce-overhead" in arguments:
        sys.exit("overhead-lens: no graphs | here")
    folder = Path(arguments[arguments.index("--output") + 1])
    folder.mkdir(parents=True)
    trace = {"schemaVersion": 1, "host_name": "secret", "traceName": "/home/secret", "traceEvents": [
        {"ph": "X", "name": "a / b", "ts": 1.5, "args": {"kernel_file": "/tmp/secret/mw/kernel.py", "grid": [1, 2]}}]}
    with gzip.open(folder / "kineto.json.gz", "wt") as file:
        json.dump(trace, file)
    call = {**device, "events_per_call": 36.0, "launch": {"median_ns": 4_000}}
    print(json.dumps({"wall": {"ns": 806_500.0}, "device": call}))
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
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 13
    assert rows[0] == [
        "training, run", "806.5 µs", "188.0 µs (23%)", "618.5 µs", "launch 600.0 µs", "72", "5.0 µs", "", "",
    ]  # fmt: skip
    assert rows[1] == [
        "split_stack, eager", "806.5 µs", "188.0 µs (23%)", "618.5 µs", "launch 600.0 µs", "36", "4.0 µs",
        "1,613.0 µs (0.50x)", "188.0 µs (1.00x)",
    ]  # fmt: skip
    assert rows[3][:2] == ["split_stack, reduce-overhead", "not measured: overhead-lens: no graphs / here"]
    assert (out / "table.md").read_text() == done.stdout
    with gzip.open(out / "reference" / "gelu-compiled.json.gz") as file:
        assert json.load(file) == {
            "schemaVersion": 1,
            "traceEvents": [
                {"ph": "X", "name": "a / b", "ts": 1.5, "args": {"kernel_file": "kernel.py", "grid": [1, 2]}}
            ],
        }
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
