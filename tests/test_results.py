"""The results that the documentation renders: each is of a script that is there, and has that script's columns."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from scripts.results import RESULTS, ROOT, Cell, Claim, Column, Origin, ages, read_result, revision_of, write_result

CLAIM = Claim(
    claim="drawn",
    question="Why?",
    method="By drawing.",
    command="true",
    columns=(Column("a", "ns"), Column("b")),
    about=("overhead_lens/stats",),
)
ORIGIN = Origin(measured_on="2026-11-23", machine="a CPU, 2 cores", torch="2.13.0", python="3.11.7", revision="")

# Facts that nothing will change again: their programs are gone, their results are still shown.
SETTLED = {
    "advise-ladder",
    "advise-nested",
    "advise-nothing",
    "attach-cost",
    "attach-harmless",
    "inject-harmless",
    "blocking",
    "cold-calls",
    "critical-path-peers",
    "dask",
    "deep-compare",
    "deep-guards",
    "fuzz",
    "history",
    "in-process",
    "instructions",
    "known-steps",
    "loop",
    "page",
    "profile-time",
    "profiler-distortion",
    "published-crossings",
    "published-fastest",
    "published-fits",
    "region",
    "stack-blocks",
    "team-costs",
    "team-samples",
    "trace-peers",
    "trace-peers-each",
    "until",
    "verdicts-compiled",
    "verdicts-compiled-load",
    "verdicts-eager",
    "verdicts-eager-load",
    "wall-interval",
}


def modules() -> Iterator[ModuleType]:
    """Every script that has a claim."""
    for folder in ("validation", "benchmarks", "gpu"):
        for path in sorted((ROOT / "scripts" / folder).glob("*.py")):
            if "CLAIM = Claim(" in path.read_text(encoding="utf-8"):
                yield importlib.import_module(f"scripts.{folder}.{path.stem}")
    for package in ("answers", "known_costs", "wild"):
        yield importlib.import_module(f"scripts.validation.{package}.__main__")
    yield importlib.import_module("scripts.reproduction.tables")


def claims() -> dict[str, Claim]:
    """Every claim by its name."""
    found = [claim for module in modules() for claim in getattr(module, "CLAIMS", None) or [module.CLAIM]]
    assert len({claim.claim for claim in found}) == len(found)
    return {claim.claim: claim for claim in found}


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_a_stored_result_is_of_a_script(path: Path) -> None:
    result = read_result(path)
    assert result.claim == path.stem
    assert all((ROOT / part).exists() for part in result.about)
    assert date.fromisoformat(result.measured_on)
    assert all((result.machine, result.torch, result.python, result.rows))
    assert (path.stem in SETTLED) == (not result.command)
    if not result.command:
        return
    claim = claims()[path.stem]
    assert result.about == claim.about
    assert result.columns == claim.columns
    assert result.question == claim.question
    assert result.method == claim.method
    assert result.command.startswith(claim.command.partition(" FOLDER")[0])


def test_every_claim_has_a_result() -> None:
    assert {path.stem for path in RESULTS.glob("*.json")} == set(claims()) | SETTLED


def test_a_result_is_written_and_read_again(tmp_path: Path) -> None:
    rows: list[list[Cell]] = [[1, "x"], [None, 2.5]]
    path = tmp_path / "results" / "drawn.json"
    write_result(path, CLAIM.answered(rows, ["a note"], ORIGIN))
    assert json.loads(path.read_text()) == {
        "claim": "drawn",
        "question": "Why?",
        "method": "By drawing.",
        "command": "true",
        "measured_on": "2026-11-23",
        "machine": "a CPU, 2 cores",
        "torch": "2.13.0",
        "python": "3.11.7",
        "columns": [{"name": "a", "unit": "ns"}, {"name": "b", "unit": ""}],
        "rows": [[1, "x"], [None, 2.5]],
        "notes": ["a note"],
        "revision": "",
        "about": ["overhead_lens/stats"],
    }
    assert read_result(path) == CLAIM.answered(rows, ["a note"], ORIGIN)
    assert [each.name for each in path.parent.iterdir()] == ["drawn.json"]


def test_a_row_of_another_length_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^drawn: 2 columns, but a row \(1,\)$"):
        CLAIM.answered([[1]], origin=ORIGIN)
    path = tmp_path / "drawn.json"
    path.write_text("{}")
    with pytest.raises(msgspec.ValidationError):
        read_result(path)


def test_a_result_knows_how_many_commits_changed_what_it_is_about(tmp_path: Path) -> None:
    checkout, results = tmp_path / "checkout", tmp_path / "results"
    assert revision_of(tmp_path) == ""
    first = committed(checkout, "overhead_lens/stats/mean.py", "scripts/results.py")
    assert revision_of(checkout) == first
    (checkout / "notes.txt").write_text("beside the code")
    assert revision_of(checkout) == first
    (checkout / "scripts" / "results.py").write_text("changed")
    assert revision_of(checkout) == f"{first}+"
    for file in (
        "overhead_lens/stats/mean.py",
        "overhead_lens/units.py",
        "docs/index.md",
        "overhead_lens/stats/new.py",
    ):
        last = committed(checkout, file)

    drawn = {"first": f"{first}+", "last": last, "lost": "0123abc", "none": ""}
    for name, revision in drawn.items():
        claim = replace(CLAIM, claim=name)
        write_result(results / f"{name}.json", claim.answered([[1, 2]], origin=replace(ORIGIN, revision=revision)))
    whole = replace(CLAIM, claim="whole", about=("overhead_lens",))
    write_result(results / "whole.json", whole.answered([[1, 2]], origin=replace(ORIGIN, revision=first)))
    settled = replace(CLAIM, claim="settled", command="")
    write_result(results / "settled.json", settled.answered([[1, 2]], origin=replace(ORIGIN, revision=first)))
    assert list(ages(checkout, results)) == [
        ("first", "2026-11-23", f"{first}+", 2, "overhead_lens/stats"),
        ("last", "2026-11-23", last, 0, "overhead_lens/stats"),
        ("lost", "2026-11-23", "0123abc", None, "overhead_lens/stats"),
        ("none", "2026-11-23", "", None, "overhead_lens/stats"),
        ("whole", "2026-11-23", first, 3, "overhead_lens"),
    ]


def committed(checkout: Path, *files: str) -> str:
    """A commit that changes files of a drawn checkout, made if it is not there."""
    for file in files:
        path = checkout / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as text:
            text.write("one line more\n")
    git = (
        "git",
        "-C",
        str(checkout),
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
    )
    for words in (("init", "--quiet"), ("add", *files), ("commit", "--quiet", "--message", "Drawn")):
        subprocess.run([*git, *words], check=True)
    done = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_readme_names_every_program() -> None:
    scripts = ROOT / "scripts"
    rows = re.findall(r"^\| `(\w+)` \|", (scripts / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    programs = [
        path.parent.name if path.stem == "__main__" else path.stem
        for folder in ("validation", "benchmarks")
        for pattern in ("*.py", "*/__main__.py")
        for path in (scripts / folder).glob(pattern)
        if "CLAIM = Claim(" in path.read_text(encoding="utf-8")
    ]
    assert sorted(rows) == sorted(programs)


def test_the_documentation_names_only_scripts_that_are_there() -> None:
    pages = (*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md"))
    named = {
        name for page in pages for name in re.findall(r"\bscripts[./]\w[\w./]*\w", page.read_text(encoding="utf-8"))
    }
    paths = {name: ROOT / (name if "/" in name else name.replace(".", "/")) for name in named - {"scripts.FOLDER.NAME"}}
    assert {name for name, path in paths.items() if not (path.exists() or path.with_suffix(".py").exists())} == set()
    assert "scripts.validation.known_costs" in paths
