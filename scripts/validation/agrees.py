"""Do `run`, `attach` and `profile` agree on one step? The step in a program's loop, and as a function.

python -m scripts.validation.agrees [--ways run attach] [--repetitions N] [--steps N] [--seconds S]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripts.benchmarks.repeat import overlap
from scripts.command import document, run_document
from scripts.results import Cell, Claim, Column, Table

_COMMAND = "python -m scripts.validation.agrees"


def _columns(first: str, way: str) -> tuple[Column, ...]:
    shares = (Column(f"{which}{end}", "share") for which in (way, "profile") for end in ("", " low", " high"))
    return (Column(first), Column("category"), *shares, Column("agree"))


CLAIM = Claim(
    claim="run-agrees",
    question="Do `run` and `profile` agree on one step, at the default number of threads?",
    method=(
        "A program calls one function in a loop under `overhead-lens run`; the function is also profiled. "
        "Both say which share of the step each category takes, with its 95 % interval. "
        "A repetition agrees where the intervals of all categories meet."
    ),
    command=_COMMAND,
    columns=_columns("repetition", "run"),
)

ATTACHED = Claim(
    claim="attach-agrees",
    question="Does `attach` to a steady loop agree with `profile` of the same call?",
    method=(
        "A program that was started without the tool calls a function for ever and is watched; the function is also profiled. "
        "Both say which share of the time each category takes, with its 95 % interval. "
        "They agree where the intervals meet."
    ),
    command=_COMMAND,
    columns=_columns("round", "attach"),
)

CLAIMS = (CLAIM, ATTACHED)

PROGRAM = Path(__file__).with_name("laboratory") / "agreeing.py"

# The watched loop and its profile: a thread of OpenMP's that spins would be watched, too.
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def main() -> None:
    """Measure both ways, a repetition after the other, print the tables and write the results."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--ways", nargs="+", choices=("run", "attach"), default=("run", "attach"))
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100_000, help="steps of a run")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which the loop is watched")
    parser.add_argument("--attached", type=Path, metavar="FILE", help="where the result of `attach` goes")
    options = parser.parse_args()
    command = f"{_COMMAND} --repetitions {options.repetitions}"
    if "run" in options.ways:
        claim = replace(CLAIM, command=command)
        answer(claim, options.result, options.repetitions, lambda: (by_run(options.steps), profiled()))
    if "attach" in options.ways:
        claim = replace(ATTACHED, command=f"{command} --seconds {options.seconds:g}")
        answer(
            claim, options.attached, options.repetitions, lambda: (by_attach(options.seconds), profiled(_ONE_THREAD))
        )


def answer(
    claim: Claim,
    path: Path | None,
    repetitions: int,
    measure: Callable[[], tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> None:
    """Measure and print the rows of a claim, and write the result."""
    table = Table(claim)
    for number in range(repetitions):
        table.add(*([number, *row] for row in compared(*measure())))
    table.write(path, notes_of(table.rows))


def by_run(steps: int) -> Mapping[str, Any]:
    """What ``run`` says of the step: its wall in ns, and the categories."""
    run = run_document(PROGRAM, "--steps", steps)
    return {"wall_ns": run["wall"]["ns"], "host": run["host"]}


def by_attach(seconds: float) -> Mapping[str, Any]:
    """What ``attach`` says of the loop's thread."""
    loop = [sys.executable, str(PROGRAM), "--steps", str(10**12)]
    with (
        tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder,
        subprocess.Popen(loop, stdout=subprocess.PIPE, env={**os.environ, **_ONE_THREAD}) as process,
    ):
        assert process.stdout is not None
        try:
            process.stdout.readline()
            words = ("attach", process.pid, "--duration", f"{seconds:g}", "-o", f"{folder}/attach", "--quiet")
            thread: Mapping[str, Any] = document(*words, folder=folder, variables=_ONE_THREAD)["threads"][0]
        finally:
            with suppress(ProcessLookupError):
                process.kill()
        return thread


def profiled(variables: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """What ``profile`` says of the step."""
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        options = ("--inputs", f"{PROGRAM}:prepared", "--output", f"{folder}/profile", "--quiet")
        budget = document("profile", f"{PROGRAM}:step", *options, folder=folder, variables=variables)
    return {"wall_ns": budget["wall"]["ns"], "host": budget["host"]}


def compared(watched: Mapping[str, Any], profile: Mapping[str, Any]) -> list[list[Cell]]:
    """Every category that either of the two has seen."""
    rows: list[list[Cell]] = []
    for mine, other in zip(watched["host"], profile["host"], strict=True):
        if mine["ns"] or other["ns"]:
            left, right = shares(mine, watched["wall_ns"]), shares(other, profile["wall_ns"])
            rows.append([mine["category"], *left, *right, overlap(left[1:], right[1:])])
    return rows


def shares(row: Mapping[str, Any], wall_ns: float) -> tuple[float, float, float]:
    """A category's share with its interval."""
    low, high = (round(end / wall_ns, 5) for end in row["ci95_ns"])
    return row["share"], low, high


def notes_of(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """In how many repetitions all categories agree."""
    repetitions = {row[0] for row in rows}
    apart = {row[0] for row in rows if not row[-1]}
    return [f"All categories agree in {len(repetitions - apart)} of {len(repetitions)} repetitions."]


if __name__ == "__main__":
    main()
