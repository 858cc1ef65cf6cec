"""``run`` from a program to its budget, for real: its steps, its stacks, its phases."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documents import validated
from tests.programs.expected import PROGRAMS as EXPECTED
from tests.programs.expected import complaints
from tests.worker.warm import COMMANDS, ended

pytestmark = [
    pytest.mark.measures,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are watched on Linux"),
]

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"

SERVER = """
import queue, threading, time
import torch

def serve(requests, answers):
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(20)))
    with torch.no_grad():
        while (request := requests.get()) is not None:
            answers.put(model(request))

requests, answers = queue.Queue(), queue.Queue()
thread = threading.Thread(target=serve, args=(requests, answers), name="model")
thread.start()
count = 0
while time.process_time() < 9:  # on a busy machine it takes longer
    requests.put(torch.ones(256, 64))
    answers.get()
    count += 1
requests.put(None)
thread.join()
open("served", "w").write(str(count))
"""

SHORT = """
import hashlib, time
end = time.monotonic() + 3
while time.monotonic() < end:
    for _ in range(100):
        hashlib.sha256(b"x" * 20_000).hexdigest()
"""


def measured(folder: Path, *command: object) -> dict[str, Any]:
    """The document of a run, checked for what holds of every run."""
    words = ("-m", "overhead_lens", "run", "--json-file", "run.json", "-o", "run")
    done = ended(*words, *command, cwd=folder, modules=COMMANDS)
    assert done.returncode == 0, done.stderr
    document = validated((folder / "run.json").read_text())
    if any("no permission" in warning for warning in document["warnings"]):
        pytest.skip(f"processes cannot be watched here: {document['warnings']}")
    assert sum(row["ns"] for row in document["host"]) == document["wall"]["ns"]
    for thread in document["threads"]:
        assert sum(row["ns"] for row in thread["host"]) == thread["wall_ns"] == document["wall"]["ns"]
    meta = json.loads((folder / "run" / "meta.json").read_text())
    assert sum(phase["wall_ns"] for phase in document["phases"]) == meta["wall_ns"]
    assert {path.name for path in (folder / "run").iterdir()} <= {
        *(
            "meta.json",
            "steps.parquet",
            "stacks.txt.gz",
            "kineto.json.gz",
            "report.txt",
            "trace.pftrace",
            "profiler.log",
        ),
    }
    return document


def test_a_training_program(tmp_path: Path) -> None:
    found = measured(tmp_path, PROGRAMS / "mlp_adamw.py", "--steps", 2_500)
    steps = found["steps"]
    assert (steps["found_by"], steps["count"], steps["thread"], found["per"]) == ("optimizer", 2_500, "", "step")
    assert steps["measured"] >= 3
    assert found["sampling"]["stacks"] >= 100
    assert found["sampling"]["step_ratio"] is not None
    assert {phase["name"] for phase in found["phases"]} >= {"import", "warm_up", "steps", "other"}


@pytest.mark.quiet
def test_a_program_with_a_flaw_is_told_it(tmp_path: Path) -> None:
    (expected,) = (each for each in EXPECTED if each.name == "starved_loader --workers 1")
    found = measured(tmp_path, PROGRAMS / "starved_loader.py", *expected.arguments, "--steps", 2_000)
    assert (found["steps"]["count"], found["steps"]["found_by"]) == (2_000, "optimizer")
    assert complaints(expected, found) == []


def test_a_server_of_threads(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    found = measured(tmp_path, "server.py")
    steps, served = found["steps"], int((tmp_path / "served").read_text())
    assert (steps["found_by"], steps["count"], steps["thread"]) == ("module", served, "model")
    assert found["sampling"]["stacks"] >= 100
    main = json.loads((tmp_path / "run" / "meta.json").read_text())["pid"]
    assert main in {thread["thread"] for thread in found["threads"]}


def test_a_program_of_three_seconds(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text(SHORT)
    found = measured(tmp_path, "short.py")
    assert found["sampling"]["stacks"] >= 100
    python = next(row for row in found["host"] if row["category"] == "python")
    assert found["wall"]["ns"] > 0 < python["ns"]
