"""The wheel holds the scenarios and works outside of the checkout; the sdist holds all that the tests import."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from overhead_lens.taxonomy.rules import tomllib

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


def test_the_package_imports_what_it_declares() -> None:
    """The wheel's own test finds the developer's packages; a user has only those that are declared."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    required, optional = (
        {Requirement(text).name for text in texts}
        for texts in (project["dependencies"], [*extras["cluster"], *extras["ui"]])
    )
    provided_by = packages_distributions()
    imported = {
        provided_by.get(name, [name])[0]
        for file in ROOT.glob("overhead_lens/**/*.py")
        for name in _imported_packages(file) - sys.stdlib_module_names - {"overhead_lens"}
    }
    # Those that load it, and numba's own compiler.
    assert imported - required - optional == {"pytest", "ipython", "llvmlite"}
    # A program, and what is imported by its name.
    assert required - imported == {"py-spy", "plotly"}


def _imported_packages(file: Path) -> set[str]:
    nodes = [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    absolute = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    names = [*absolute, *(each.name for node in nodes if isinstance(node, ast.Import) for each in node.names)]
    return {name.partition(".")[0] for name in names}


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
