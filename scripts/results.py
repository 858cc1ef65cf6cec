"""The result of a script: one question, how it was asked, and the answers as one table, stored as JSON.

Each script defines its ``CLAIM``, prints the table while it measures and writes ``docs/results/CLAIM.json`` at its end.

    python -m scripts.results

lists the age of each result that is not settled: how many later commits changed the code that it measures.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import msgspec

from overhead_lens import user_cache
from overhead_lens.machine.environment import describe_machine

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PACKAGE = "overhead_lens"

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result; without a unit it holds texts or pure numbers, ``share`` is of 1."""

    name: str
    unit: str = ""


def columns_of(heading: str) -> tuple[Column, ...]:
    """The columns of a heading such as ``call | wall [ns]``, which has their units in brackets."""
    matches = (re.fullmatch(r"(.+?)(?: \[(.+)\])?", text.strip()) for text in heading.split("|"))
    return tuple(Column(each[1], each[2] or "") for each in matches if each is not None)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """When and where something was measured.

    Attributes:
        measured_on: Date, ISO 8601.
        machine: Processor and cores.
        torch, python: Versions.
        revision: As of ``revision_of``.
    """

    measured_on: str
    machine: str
    torch: str
    python: str
    revision: str = ""

    @classmethod
    def here(cls) -> Origin:
        """Today and on this machine."""
        about = describe_machine()
        return cls(
            measured_on=datetime.now(timezone.utc).date().isoformat(),
            machine=f"{about['cpu']}, {about['cores']} cores",
            torch=metadata.version("torch"),
            python=platform.python_version(),
            revision=revision_of(ROOT),
        )


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a script asks and how: a result without its answers.

    Attributes:
        claim: Name of the result, and of its file.
        question: What is asked.
        method: How it was answered, in three sentences.
        command: What measures it again, from the root of the checkout; empty of a settled fact, whose program is gone.
        columns: One for each cell of a row.
        about: Files and folders of the checkout whose change may change the answers.
    """

    claim: str
    question: str
    method: str
    command: str
    columns: tuple[Column, ...]
    about: tuple[str, ...] = (PACKAGE,)

    def answered(
        self, rows: Sequence[Sequence[Cell]], notes: Sequence[str] = (), origin: Origin | None = None
    ) -> Result:
        """The result, measured here and today where no other origin is named."""
        where = origin or Origin.here()
        return Result(**vars(self), **vars(where), rows=tuple(map(tuple, rows)), notes=tuple(notes))

    def parser(self, description: str | None) -> argparse.ArgumentParser:
        """An argument parser that knows ``--result``."""
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        place = (RESULTS / f"{self.claim}.json").relative_to(ROOT)
        parser.add_argument("--result", type=Path, metavar="FILE", help=f"where the result goes; default: {place}")
        return parser


@dataclass(frozen=True, kw_only=True)
class Result(Origin, Claim):
    """Answers to one question, as measured on one machine.

    Attributes:
        revision: As of ``Origin``. Results from before revisions were kept have the parent of the commit that stored their
            rows on the day of the measurement, with a "+" where that commit changed code too.
        rows: The table; None is a cell that was not measured.
        notes: What the table does not say.
    """

    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if wrong := [row for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(f"{self.claim}: {len(self.columns)} columns, but a row {wrong[0]}")


class Table:
    """The rows of a claim, each of which is printed as soon as it is added, as of a Markdown table."""

    def __init__(self, claim: Claim) -> None:
        self.rows: list[Sequence[Cell]] = []
        self._claim = claim
        print_heading(claim.columns)

    def add(self, *rows: Sequence[Cell]) -> None:
        """Add rows."""
        for row in rows:
            self.rows.append(row)
            print_row(row)

    def write(self, path: Path | None, notes: Sequence[str] = (), origin: Origin | None = None) -> None:
        """Print the notes and write the result; see ``write_result``."""
        if notes:
            print("", *notes, sep="\n")
        write_result(path, self._claim.answered(self.rows, notes, origin))


def write_result(path: Path | None, result: Result) -> None:
    """Write a result as JSON, whole or not at all; to where the documentation finds it if no path is named."""
    text = msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"
    user_cache.replace(path or RESULTS / f"{result.claim}.json", text)


def read_result(path: Path) -> Result:
    """Read a stored result.

    Raises:
        msgspec.ValidationError: It is none.
    """
    return msgspec.json.decode(path.read_bytes(), type=Result)


def print_heading(columns: Sequence[Column]) -> None:
    """Print the head of a Markdown table."""
    names = [f"{column.name}, {column.unit}" if column.unit else column.name for column in columns]
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}", flush=True)


def print_row(row: Sequence[Cell]) -> None:
    """Print a row of a Markdown table."""
    print(f"| {' | '.join(map(_shown, row))} |", flush=True)


def _shown(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell).replace("|", "/")


def revision_of(checkout: Path) -> str:
    """The commit of a checkout, with a "+" where its code is changed; empty outside of git."""
    commit = _git(checkout, "rev-parse", "--short", "HEAD")
    changed = _git(checkout, "status", "--porcelain", "--", PACKAGE, "scripts")
    return f"{commit}+" if commit and changed else commit


def commits_since(checkout: Path, revision: str, about: Sequence[str]) -> int | None:
    """How many commits since a revision changed what a result is about; None where the revision is not known."""
    count = revision and _git(checkout, "rev-list", "--count", f"{revision.rstrip('+')}..HEAD", "--", *about)
    return int(count) if count else None


def ages(checkout: Path, results: Path) -> Iterator[tuple[Cell, ...]]:
    """Name, day and revision of each result that can be measured again, the commits since, and the paths in which they count."""
    for result in map(read_result, sorted(results.glob("*.json"))):
        if result.command:
            since = commits_since(checkout, result.revision, result.about)
            yield result.claim, result.measured_on, result.revision, since, " ".join(result.about)


def _git(checkout: Path, *words: str) -> str:
    """What git prints; nothing where it fails."""
    command = ["git", "-C", str(checkout), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    print_heading([Column(name) for name in ("result", "measured on", "revision", "commits since", "of")])
    for age in ages(ROOT, RESULTS):
        print_row(age)
