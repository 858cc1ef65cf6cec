"""The wheel holds the scenarios and works outside of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.measures
def test_wheel_works_outside_of_the_checkout(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(build, check=True, capture_output=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert (site / "overhead_lens" / "taxonomy" / "rules.toml").is_file()
    assert (site / "overhead_lens" / "py.typed").is_file()
    env = {**os.environ, "PYTHONPATH": str(site)}
    code = "import overhead_lens; print(overhead_lens.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert where.stdout.strip() == str(site / "overhead_lens" / "__init__.py")
    command = [sys.executable, "-m", "overhead_lens", "scenarios", "--json"]
    listed = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert sorted(row["name"] for row in json.loads(listed)) == sorted(
        path.stem for path in (ROOT / "scenarios").glob("*.py")
    )
