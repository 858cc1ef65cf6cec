"""Is ``run`` right on other people's programs? Each is run by the tool and beside it, under clocks.

    python -m scripts.validation.wild [--environment FOLDER] [--only NAME ...] [--what truth run profile] [--rounds N]

It makes an environment with transformers, Lightning, PyTorch Geometric and accelerate from the package index. What is measured is
kept in the environment's folder, and the tables are made of all that is there: a part of it can be measured again. ``truth.py``
says what the truth is.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.programs import shares_of
from scripts.validation.wild.environment import Environment, default_folder
from scripts.validation.wild.listed import ALL, Program
from scripts.validation.wild.measuring import WAYS, Bench, FailedError
from scripts.validation.wild.truth import TOLERATED_SHARE, Readings, bounds

_COMMAND = "python -m scripts.validation.wild"

CLAIM = Claim(
    claim="wild",
    question="Is `run` right on other people's programs?",
    method=(
        "Programs of transformers, Lightning, PyTorch Geometric, accelerate and of plain torch, none of which sets its threads, "
        "are run by `overhead-lens run`. "
        "Kernels and waiting for their threads must take as long as clocks say, within 5 % of a step without the tool, "
        "and at most 2 % of a step may be unattributed."
    ),
    command=_COMMAND,
    columns=(
        Column("program"),
        Column("steps found by"),
        Column("step", "ns"),
        Column("without the tool", "ns"),
        Column("kernel", "ns"),
        Column("wait/parallel", "ns"),
        Column("truth from", "ns"),
        Column("truth to", "ns"),
        Column("off by", "share"),
        Column("python", "share"),
        Column("dispatcher", "share"),
        Column("allocation", "share"),
        Column("unattributed", "share"),
        Column("stacks"),
        Column("sampled steps over bare ones"),
        Column("same output"),
        Column("verdict"),
    ),
)

TRUTHS = Claim(
    claim="wild-truths",
    question="How long do the kernels of other people's programs take, by clocks?",
    method=(
        "Each program is clocked with as many threads as cores, with one, without the garbage collector, with pages that malloc "
        "keeps, and at sizes at which kernels have next to nothing to do. "
        "The truth is the difference between its own sizes and the smallest: of the steps, of operators clocked by themselves, "
        "or of a trace's operators. "
        "Beside it stands what `profile` says of the step as a function."
    ),
    command=_COMMAND,
    columns=(
        Column("program"),
        Column("step", "ns"),
        Column("one thread", "ns"),
        Column("without the collector", "ns"),
        Column("kept pages", "ns"),
        Column("smallest sizes", "ns"),
        Column("kernels"),
        Column("truth by"),
        Column("truth from", "share"),
        Column("truth to", "share"),
        Column("by walls", "share"),
        Column("by operators", "share"),
        Column("by trace", "share"),
        Column("by profile", "share"),
    ),
)

CLAIMS = (CLAIM, TRUTHS)

_MOST_UNATTRIBUTED = 0.02

# Processes of one program differ by a few percent.
_MOST_SLOWER = 0.1

_KINDS = ("truth", "run", "profile")


@dataclass(frozen=True, slots=True)
class Figures:
    """What has been measured of programs: a file each, of one kind."""

    folder: Path

    def read(self, program: Program, *kinds: str) -> list[dict[str, Any]]:
        """What was measured, of each kind; ``failed`` says why there is nothing."""
        paths = [self._path(program, kind) for kind in kinds]
        return [
            json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"failed": "not measured"}
            for path in paths
        ]

    def write(self, program: Program, kind: str, figures: Mapping[str, Any]) -> None:
        """Keep what was measured."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._path(program, kind).write_text(json.dumps(figures, indent=1), encoding="utf-8")

    def _path(self, program: Program, kind: str) -> Path:
        return self.folder / f"{program.name.replace(' ', '')}.{kind}.json"


def main() -> None:
    """Make the environment, measure, print both tables and write the results."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--environment", type=Path, default=default_folder(), metavar="FOLDER")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs to measure; default: all")
    parser.add_argument(
        "--what", nargs="*", choices=_KINDS, default=_KINDS, help="what to measure; nothing: the tables only"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of the clocks")
    parser.add_argument("--truths", type=Path, metavar="FILE", help="where the result of the clocks goes")
    options = parser.parse_args()
    environment = Environment(options.environment.absolute())
    try:
        environment.make()
    except subprocess.CalledProcessError as error:
        parser.exit(1, f"the environment could not be made: {error}\n")
    bench, figures = Bench(environment, environment.folder), Figures(environment.folder / "figures")
    for program in ALL:
        if not options.only or program.file in options.only:
            for kind in options.what:
                figures.write(program, kind, measured(bench, program, kind, options.rounds))
    versions = f"{environment.versions()}."
    truths = [truth_row(program, *figures.read(program, "truth", "profile")) for program in ALL]
    rows = [run_row(program, *figures.read(program, "run", "truth")) for program in ALL]
    notes = [
        versions,
        *notes_of(rows),
        *warnings_of((program.name, figures.read(program, "run")[0]) for program in ALL),
    ]
    for claim, table in ((TRUTHS, truths), (CLAIM, rows)):
        print_heading(claim.columns)
        for row in table:
            print_row(row)
        print()
    print(*notes, sep="\n")
    write_result(options.truths, TRUTHS.answered(truths, [versions]))
    write_result(options.result, CLAIM.answered(rows, notes))


def measured(bench: Bench, program: Program, kind: str, rounds: int) -> dict[str, Any]:
    """Figures of one kind; ``failed`` says why there are none."""
    print(f"{program.name}: {kind}", flush=True)
    try:
        if kind == "truth":
            return {
                "rounds": [{name: bench.clocked(program, way) for name, way in WAYS.items()} for _ in range(rounds)]
            }
        if kind == "run":
            documents, ended = bench.run(program)
            return {"documents": documents, "ended": asdict(ended)}
        return bench.profiled(program) if program.function else {"failed": "its step is no function"}
    except FailedError as error:
        return {"failed": str(error)}


def readings_of(truth: Mapping[str, Any]) -> Readings | None:
    """The readings of the rounds together; None where they failed."""
    return None if "failed" in truth else Readings.of(truth["rounds"])


def truth_row(program: Program, truth: Mapping[str, Any], profile: Mapping[str, Any]) -> list[Cell]:
    """The clocks' figures of a program as a row."""
    readings = readings_of(truth)
    if readings is None:
        return [program.name, *[None] * 6, truth["failed"], *[None] * 6]
    true = bounds(readings, program.truth)
    walls, operators, trace = (round(bounds(readings, by).low, 4) for by in ("walls", "operators", "trace"))
    ways = (readings.usual, readings.one_thread, readings.no_gc, readings.kept, readings.smallest)
    return [
        program.name,
        *(round(way.step_ns) for way in ways),
        round(readings.smallest.kernels),
        program.truth,
        *(round(true.low, 4), round(true.high, 4)),
        *(walls, operators if program.operators else None, trace),
        None if "failed" in profile else profiled_share(program, profile, readings.usual.step_ns),
    ]


def profiled_share(program: Program, profile: Mapping[str, Any], step_ns: float) -> float:
    """What ``profile`` says that kernels and their threads take in the function, as a share of the program's step."""
    return round(sum(kernels_ns(profile)) / program.steps_of_function / step_ns, 4)


def kernels_ns(document: Mapping[str, Any]) -> tuple[float, float]:
    """Time in kernels, and in waiting for their threads."""
    shares, wall_ns = shares_of(document), document["wall"]["ns"]
    return shares["kernel"] * wall_ns, shares.get("wait/parallel", 0.0) * wall_ns


def run_row(program: Program, run: Mapping[str, Any], truth: Mapping[str, Any]) -> list[Cell]:
    """What ``run`` says of a program, beside the truth, as a row."""
    if "failed" in run:
        return [program.name, *[None] * (len(CLAIM.columns) - 2), run["failed"]]
    document, ended = run["documents"][0], run["ended"]
    shares, readings = shares_of(document), readings_of(truth)
    sampling = document.get("sampling") or {}
    return [
        program.name,
        document["steps"]["found_by"],
        *beside_truth(program, document, readings),
        *(round(shares[name], 4) for name in ("python", "dispatcher", "allocation", "unattributed")),
        *(sampling.get("stacks"), sampling.get("step_ratio")),
        ended["same_output"] if program.repeatable else None,
        "; ".join(complaints(program, document, ended, readings)) or "right",
    ]


def beside_truth(program: Program, document: Mapping[str, Any], readings: Readings | None) -> list[Cell]:
    """A step and the time in its kernels, beside those by clocks."""
    step_ns, (kernel_ns, parallel_ns) = document["wall"]["ns"], map(round, kernels_ns(document))
    if readings is None:
        return [step_ns, None, kernel_ns, parallel_ns, None, None, None]
    bare_ns, true = readings.usual.step_ns, bounds(readings, program.truth)
    low_ns, high_ns = round(true.low * bare_ns), round(true.high * bare_ns)
    off = true.off((kernel_ns + parallel_ns) / bare_ns)
    return [step_ns, round(bare_ns), kernel_ns, parallel_ns, low_ns, high_ns, round(off, 4)]


def complaints(
    program: Program, document: Mapping[str, Any], ended: Mapping[str, Any], readings: Readings | None
) -> Iterator[str]:
    """What is wrong with a run."""
    alone, watched = ended["exit_codes"]
    if alone != watched:
        yield f"exit code {watched}, by itself {alone}"
    if program.repeatable and not ended["same_output"]:
        yield "another output"
    if document["steps"]["found_by"] == "none":
        yield "no steps"
    elif readings is None:
        yield "no truth"
    else:
        yield from _off(program, document, readings)
    if (share := shares_of(document)["unattributed"]) > _MOST_UNATTRIBUTED:
        yield f"{share:.1%} unattributed"


def _off(program: Program, document: Mapping[str, Any], readings: Readings) -> Iterator[str]:
    bare_ns = readings.usual.step_ns
    off = bounds(readings, program.truth).off(sum(kernels_ns(document)) / bare_ns)
    if abs(off) > TOLERATED_SHARE:
        yield f"{abs(off):.0%} of a step {'above' if off > 0 else 'below'} the truth"
    slower = document["wall"]["ns"] / bare_ns - 1
    if abs(slower) > _MOST_SLOWER:
        yield f"a step {abs(slower):.0%} {'longer' if slower > 0 else 'shorter'} than without the tool"


def notes_of(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """How many are right."""
    return [f"{sum(row[-1] == 'right' for row in rows)} of {len(rows)} are right."]


def warnings_of(runs: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[str]:
    """What ``run`` warned of."""
    for name, run in runs:
        for warning in run.get("documents", [{"warnings": []}])[0]["warnings"]:
            yield f"`{name}`: {warning}"


if __name__ == "__main__":
    main()
