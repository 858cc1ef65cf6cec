"""``run`` under torchrun: two ranks over Gloo, one of which is late in every step."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.run import lens
from tests.documents import validated
from tests.worker.warm import ended

pytestmark = [
    pytest.mark.measures,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are watched on Linux"),
]

TRAINING = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def late():
    for _ in range(100):
        sum(number * number for number in range(10_000))

# Enough steps for several bare ones: on a machine with other work, a rank waits longer for one that a sampler stops.
for _ in range(80):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    if dist.get_rank() == 1:
        late()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
open(f"ended-{dist.get_rank()}", "w").write(str(dist.get_world_size()))
dist.destroy_process_group()
"""


@pytest.mark.quiet
def test_each_rank_is_reported_and_the_late_one_is_in_python(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    run = [sys.executable, "-m", "overhead_lens", "run", "--json-file", "run.json", "-o", "job", "train.py"]
    done = ended(*torchrun, *run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"ended-{rank}").read_text() for rank in range(2)] == ["2", "2"]
    found = [validated((tmp_path / f"run-rank-{rank}.json").read_text()) for rank in range(2)]
    if any("no permission" in warning for document in found for warning in document["warnings"]):
        pytest.skip(f"processes cannot be watched here: {found[0]['warnings']}")
    shares = []
    for rank, document in enumerate(found):
        steps = document["steps"]
        assert (steps["count"], steps["found_by"], document["exit_code"]) == (80, "optimizer", 0)
        assert sum(row["ns"] for row in document["host"]) == document["wall"]["ns"]
        assert json.loads((tmp_path / "job" / f"rank-{rank}" / "meta.json").read_text())["rank"] == rank
        shares.append({row["category"]: row["share"] for row in document["host"]})
    # Both take as long: one works, the other waits for it.
    assert [max(each, key=lambda name: each[name]) for each in shares] == ["wait", "python"], shares
    assert shares[0]["wait"] - shares[1]["wait"] > 0.3
    report = lens("report", "job", cwd=tmp_path)
    assert (report.returncode, report.stderr) == (0, "")
    assert report.stdout.startswith("2 ranks of one job: train.py ")
    assert re.search(r"^ *0 .* wait/collective \d+%", report.stdout, re.MULTILINE)
    assert re.search(r"^ *1 .* python/user \d+%", report.stdout, re.MULTILINE)
