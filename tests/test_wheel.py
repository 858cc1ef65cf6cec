"""The wheel holds the scenarios and works outside of the checkout; the sdist holds all that the tests import."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tarfile
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


def test_sdist_holds_each_module_that_the_tests_import(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    needed = {file for test in ROOT.glob("tests/**/*.py") for file in imported_files(test)}
    assert any(file.startswith("scripts/") for file in needed)
    assert needed - shipped == set()


def imported_files(test: Path) -> set[str]:
    """Files of this repository that a test imports, relative to its root."""
    names = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    paths = (Path(*name.split(".")) for name in names)
    files = (file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py"))
    return {file.as_posix() for file in files if (ROOT / file).is_file()}
