"""The worker runs under interpreters that have torch and nothing else of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "overhead_lens"

# What torch itself imports is torch's business.
SCRIPT = """
import sys, torch, torch.profiler
banned = {"numpy", "pandas", "pyarrow", "numba", "scipy", "msgspec", "rich", "typer", "perfetto", "tomllib"}
sys.path.insert(0, SCENARIOS)
before = {name.partition(".")[0] for name in sys.modules}
import importlib, pathlib, runpy
namespace = runpy.run_path(WORKER)
namespace["_import_package"]()
root = pathlib.Path(PACKAGE)
files = [*root.glob("worker/*.py"), *root.glob("**/worker.py")]
for file in files:
    if file.name not in ("__init__.py", "serve.py"):
        importlib.import_module(".".join(file.relative_to(root.parent).with_suffix("").parts))
import overhead_lens.scenario
names = {"overhead_lens.taxonomy", "overhead_lens.taxonomy.torch_names"}
ours = {name.split(".")[1] for name in set(sys.modules) - names if name.startswith("overhead_lens.")}
print(len(files) > 15, sorted(ours & {"taxonomy", "cli", "report", "budget", "traces", "readers", "machine"}))
print(sorted(banned & {name.partition(".")[0] for name in sys.modules} - before))
"""


def test_worker_side_modules_import_torch_and_stdlib_only() -> None:
    script = SCRIPT.replace("SCENARIOS", repr(str(PACKAGE.parent / "scenarios")))
    script = script.replace("WORKER", repr(str(PACKAGE / "worker" / "serve.py"))).replace("PACKAGE", repr(str(PACKAGE)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["True []", "[]"]
