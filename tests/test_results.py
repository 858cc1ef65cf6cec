"""The results that the documentation renders: each is of a script that is there, and has that script's columns."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from scripts.results import RESULTS, ROOT, Cell, Claim, Column, Origin, read_result, write_result

CLAIM = Claim(
    claim="drawn", question="Why?", method="By drawing.", command="true", columns=(Column("a", "ns"), Column("b"))
)
ORIGIN = Origin(measured_on="2026-11-23", machine="a CPU, 2 cores", torch="2.13.0", python="3.11.7")


def modules() -> Iterator[ModuleType]:
    """Every script that has a claim."""
    for folder in ("validation", "benchmarks"):
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
    # A script may store several series: ``verdicts-compiled`` is one of ``verdicts``.
    claim = next(
        claim for name, claim in claims().items() if result.claim in (name, path.stem) and path.stem.startswith(name)
    )
    assert result.claim == path.stem
    assert result.columns == claim.columns
    assert result.question == claim.question
    assert result.method == claim.method
    assert result.command.startswith(claim.command.partition(" FOLDER")[0])
    assert date.fromisoformat(result.measured_on)
    assert all((result.machine, result.torch, result.python, result.rows))


def test_every_claim_has_a_result() -> None:
    stored = {path.stem for path in RESULTS.glob("*.json")}
    missing = [name for name in claims() if not any(each.startswith(name) for each in stored)]
    assert missing == []


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
