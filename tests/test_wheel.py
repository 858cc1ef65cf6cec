"""The wheel holds the package and the scenarios, the sdist all that the tests import."""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]


def built(target: str, folder: Path) -> Path:
    build = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
    (made,) = folder.iterdir()
    return made


def test_wheel_holds_the_package_its_data_and_the_scenarios(tmp_path: Path) -> None:
    """That it works outside of the checkout is seen by ``make wheel``."""
    with zipfile.ZipFile(built("wheel", tmp_path)) as archive:
        held = {name for name in archive.namelist() if name.startswith("overhead_lens/")}
    package = {
        path
        for kind in ("py", "toml", "typed", "js", "css", "html")
        for path in ROOT.glob(f"overhead_lens/**/*.{kind}")
    }
    scenarios = {f"overhead_lens/scenarios/{path.name}" for path in ROOT.glob("scenarios/*.*")}
    assert held == {path.relative_to(ROOT).as_posix() for path in package} | scenarios


def test_sdist_holds_each_module_that_the_tests_import(tmp_path: Path) -> None:
    with tarfile.open(built("sdist", tmp_path)) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    needed = {file for test in ROOT.glob("tests/**/*.py") for file in imported_files(test)}
    assert any(file.startswith("scripts/") for file in needed)
    assert needed - shipped == set()


def test_the_package_imports_what_it_declares() -> None:
    """The wheel's own test finds the developer's packages; a user has only those that are declared."""
    project = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())["project"]
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
    # A program, and what msgspec reads TOML with on Python 3.10.
    assert required - imported == {"py-spy", "tomli"}


def _imported_packages(file: Path) -> set[str]:
    nodes = [*imports_in(file)]
    absolute = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    names = [*absolute, *(each.name for node in nodes if isinstance(node, ast.Import) for each in node.names)]
    return {name.partition(".")[0] for name in names}


def imports_in(file: Path) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements of a file, also those inside functions."""
    inside: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while inside:
        node = inside.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        inside.extend(each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr))


def imported_files(test: Path) -> set[str]:
    """Files of this repository that a test imports, relative to its root."""
    names = set()
    for node in imports_in(test):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    paths = (Path(*name.split(".")) for name in names)
    files = (file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py"))
    return {file.as_posix() for file in files if (ROOT / file).is_file()}


def test_pinned_releases_install_on_the_first_release_of_this_python() -> None:
    """Distributions have old ones, Debian 12 Python 3.11.2, for which pip passes over a release that needs a newer one."""
    pins = [Requirement(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]
    pinned = {(pin.name.lower(), str(pin.specifier).removeprefix("==")) for pin in pins}
    first = f"{sys.version_info.major}.{sys.version_info.minor}.0"
    needs = {
        f"{each.name} {each.version}": str(each.metadata.json.get("requires_python", ""))
        for each in distributions()
        if (each.name.lower(), each.version) in pinned
    }
    assert len(needs) > len(pinned) // 2
    assert {name for name, python in needs.items() if first not in SpecifierSet(python)} == set()
