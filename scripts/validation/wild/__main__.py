"""Is ``run`` right on other people's programs? Each is run by the tool and beside it, under clocks.

    python -m scripts.validation.wild [--environment FOLDER] [--only NAME ...] [--what truth run profile] [--rounds N]

It makes an environment with transformers, Lightning, PyTorch Geometric and accelerate from the package index. What is measured is
kept in the environment's folder, and the tables are made of all that is there: a part of it can be measured again. ``truth.py``
says what the truth is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, get_args

from overhead_lens import user_cache
from scripts.command import FailedError, environment
from scripts.results import ROOT, Cell, Claim, Table, columns_of
from scripts.validation.wild.listed import ALL, Difference, Program
from scripts.validation.wild.measuring import WAYS, Bench, requirements
from scripts.validation.wild.truth import TOLERATED_SHARE, Bounds, bounds, least, share
from tests.programs.expected import shares_of

_COMMAND = "python -m scripts.validation.wild"

CLAIM = Claim(
    claim="wild",
    question="Is `run` right on other people's programs?",
    method=(
        "Programs of transformers, Lightning, PyTorch Geometric, accelerate and of plain torch, none of which sets its threads, "
        "are run by `overhead-lens run`. "
        "Kernels and waiting for their threads must take the share of a step that clocks say, within 5 points, "
        "and at most 2 % of it may be unattributed. "
        "The same program is clocked without the tool before and after."
    ),
    command=_COMMAND,
    columns=columns_of(
        "program | steps found by | step [ns] | without the tool [ns] | kernel [share] | wait/parallel [share] | "
        "truth from [share] | truth to [share] | python [share] | dispatcher [share] | allocation [share] | "
        "unattributed [share] | stacks | sampled steps over bare ones | same output | verdict"
    ),
)

TRUTHS = Claim(
    claim="clocked-programs",
    question="How long do the kernels of other people's programs take, by clocks?",
    method=(
        "Each program is clocked with as many threads as cores, with one, without the garbage collector, with pages that malloc "
        "keeps, and at sizes at which kernels have next to nothing to do. "
        "The truth lies between the differences of its own sizes and the smallest: of the steps, of a trace's operators, or of "
        "operators that are clocked by themselves. "
        "Beside it stands what `profile` says of the step as a function."
    ),
    command=_COMMAND,
    columns=columns_of(
        "program | step [ns] | one thread [ns] | without the collector [ns] | kept pages [ns] | smallest sizes [ns] | "
        "kernels | truth by | truth from [share] | truth to [share] | by walls [share] | by operators [share] | "
        "by trace [share] | by profile [share]"
    ),
)

CLAIMS = (CLAIM, TRUTHS)

_MOST_UNATTRIBUTED = 0.02

_KINDS = ("truth", "run", "profile")


def figures_file(folder: Path, program: Program, kind: str) -> Path:
    """Where what was measured of a program is kept."""
    return folder / "figures" / f"{program.name.replace(' ', '')}.{kind}.json"


def read_figures(folder: Path, program: Program, *kinds: str) -> list[dict[str, Any]]:
    """What was measured, of each kind; ``failed`` says why there is nothing."""
    paths = [figures_file(folder, program, kind) for kind in kinds]
    return [json.loads(path.read_bytes()) if path.is_file() else {"failed": "not measured"} for path in paths]


def main() -> None:
    """Make the environment, measure, print both tables and write the results."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--environment", type=Path, default=user_cache.folder() / "wild", metavar="FOLDER")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs to measure; default: all")
    parser.add_argument(
        "--what", nargs="*", choices=_KINDS, default=_KINDS, help="what to measure; nothing: the tables only"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of the clocks")
    parser.add_argument("--truths", type=Path, metavar="FILE", help="where the result of the clocks goes")
    options = parser.parse_args()
    folder = options.environment.absolute()
    try:
        environment(folder, *requirements(), "--editable", ROOT)
    except FailedError as error:
        parser.exit(1, f"the environment could not be made: {error}\n")
    bench = Bench(folder)
    for program in ALL:
        if not options.only or program.file in options.only:
            for kind in options.what:
                figures = measured(bench, program, kind, options.rounds)
                user_cache.replace(figures_file(folder, program, kind), json.dumps(figures, indent=1).encode())
    versions = f"{bench.versions()}."
    truths = [truth_row(program, *read_figures(folder, program, "truth", "profile")) for program in ALL]
    rows = [run_row(program, *read_figures(folder, program, "run", "truth")) for program in ALL]
    warned = warnings_of((program.name, read_figures(folder, program, "run")[0]) for program in ALL)
    notes = [versions, *notes_of(rows), *warned]
    for claim, path, of_claim, its_notes in (
        (TRUTHS, options.truths, truths, [versions]),
        (CLAIM, options.result, rows, notes),
    ):
        table = Table(claim)
        table.add(*of_claim)
        table.write(path, its_notes)


def measured(bench: Bench, program: Program, kind: str, rounds: int) -> dict[str, Any]:
    """Figures of one kind; ``failed`` says why there are none."""
    print(f"{program.name}: {kind}", flush=True)
    try:
        if kind == "truth":
            return {
                "rounds": [{name: bench.clocked(program, way) for name, way in WAYS.items()} for _ in range(rounds)]
            }
        if kind == "run":
            before = bench.clocked(program, WAYS["usual"])
            documents, ended = bench.run(program)
            after = bench.clocked(program, WAYS["usual"])
            bare_ns = (before["step_ns"] + after["step_ns"]) / 2
            return {"documents": documents, "ended": asdict(ended), "bare_ns": bare_ns}
        return bench.profiled(program) if program.function else {"failed": "its step is no function"}
    except FailedError as error:
        return {"failed": str(error)}


def truth_row(program: Program, truth: Mapping[str, Any], profile: Mapping[str, Any]) -> list[Cell]:
    """The clocks' figures of a program as a row."""
    if "failed" in truth:
        return [program.name, *[None] * 6, truth["failed"], *[None] * 6]
    readings = least(truth["rounds"])
    true = bounds(readings, program.truth)
    by = {each: round(share(readings, each), 4) for each in get_args(Difference)}
    return [
        program.name,
        *(round(readings[way].step_ns) for way in WAYS),
        round(readings["smallest"].kernels),
        " and ".join(program.truth),
        *(round(true.low, 4), round(true.high, 4)),
        *(by["walls"], by["operators"] if program.operators else None, by["trace"]),
        None if "failed" in profile else round(sum(kernel_shares(profile)), 4),
    ]


def kernel_shares(document: Mapping[str, Any]) -> tuple[float, float]:
    """Shares of kernels, and of waiting for their threads."""
    shares = shares_of(document)
    return shares["kernel"], shares.get("wait/parallel", 0.0)


def run_row(program: Program, run: Mapping[str, Any], truth: Mapping[str, Any]) -> list[Cell]:
    """What ``run`` says of a program, beside the truth, as a row."""
    if "failed" in run:
        return [program.name, *[None] * (len(CLAIM.columns) - 2), run["failed"]]
    document = run["documents"][0]
    true = None if "failed" in truth else bounds(least(truth["rounds"]), program.truth)
    shares, sampling = shares_of(document), document.get("sampling") or {}
    return [
        program.name,
        document["steps"]["found_by"],
        *(round(document["wall"]["ns"] * program.steps_of_run), round(run["bare_ns"])),
        *(round(each, 4) for each in kernel_shares(document)),
        *((round(true.low, 4), round(true.high, 4)) if true else (None, None)),
        *(round(shares[name], 4) for name in ("python", "dispatcher", "allocation", "unattributed")),
        *(sampling.get("stacks"), sampling.get("step_ratio")),
        run["ended"]["same_output"] if program.repeatable else None,
        "; ".join(complaints(program, run, true)) or "right",
    ]


def complaints(program: Program, run: Mapping[str, Any], true: Bounds | None) -> Iterator[str]:
    """What is wrong with a run."""
    document, ended = run["documents"][0], run["ended"]
    alone, watched = ended["exit_codes"]
    if alone != watched:
        yield f"exit code {watched}, by itself {alone}"
    if program.repeatable and not ended["same_output"]:
        yield "another output"
    if document["steps"]["found_by"] == "none":
        yield "no steps"
    elif true is None:
        yield "no truth"
    else:
        off = true.off(sum(kernel_shares(document)))
        if abs(off) > TOLERATED_SHARE:
            yield f"{100 * abs(off):.0f} points {'above' if off > 0 else 'below'} the truth"
    if (unattributed := shares_of(document)["unattributed"]) > _MOST_UNATTRIBUTED:
        yield f"{unattributed:.1%} unattributed"


def notes_of(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """How many are right, and how much longer steps take under the tool."""
    longer = [float(row[2]) / float(row[3]) - 1 for row in rows if row[2] and row[3] and row[1] != "none"]
    notes = [f"{sum(row[-1] == 'right' for row in rows)} of {len(rows)} are right."]
    if longer:
        notes.append(
            f"A step takes {min(longer):+.0%} to {max(longer):+.0%} longer, in the median {median(longer):+.1%}."
        )
    return notes


def warnings_of(runs: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """What ``run`` warned of."""
    for name, run in runs:
        for warning in run.get("documents", [{"warnings": []}])[0]["warnings"]:
            yield f"`{name}`: {warning}"


if __name__ == "__main__":
    main()
