"""Does `advise` rank the right remedy first? The programs of ``tests/programs``, each with one bottleneck built in, as calls.

python -m scripts.validation.advise_programs [--only NAME ...]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.command import document
from scripts.results import RESULTS, Cell, Claim, Table, columns_of, read_result, write_result

CLAIM = Claim(
    claim="advise-programs",
    question="Does `advise` rank the remedy first that undoes what is wrong?",
    method=(
        "The programs of `tests/programs` as calls, each with one bottleneck built in, are given to `advise --quick`. "
        "Before the run it is written down which remedies undo the bottleneck. The remedy that is ranked first must be one of "
        "them; where nothing is wrong, the verdict must be `work` and no remedy faster."
    ),
    command="python -m scripts.validation.advise_programs",
    columns=columns_of(
        "program | what is wrong with it | call [ns] | verdict | ranked first | it saves [share] | output | undoes it | "
        "took [s] | right"
    ),
)

ADVISED = Path(__file__).with_name("laboratory") / "advised"
COMPILING = ("compile", "fullgraph", "dynamic_on", "dynamic_off", "freezing", "max_autotune", "aot_inductor")


@dataclass(frozen=True, slots=True)
class Flawed:
    """A program as a call.

    Attributes:
        options: How ``advise`` is given it.
        undone_by: Remedies that undo its flaw; none where nothing is wrong.
    """

    program: str
    flaw: str
    options: tuple[str, ...]
    undone_by: tuple[str, ...]


def _function(name: str, maker: str) -> tuple[str, ...]:
    return f"{ADVISED / 'steps.py'}:{name}", "--inputs", f"{ADVISED / 'steps.py'}:{maker}"


PROGRAMS = (
    Flawed(
        "mlp_adamw",
        "an optimizer that visits parameters one by one",
        _function("train", "make_mlp"),
        ("foreach_optimizer", "fused_optimizer"),
    ),
    Flawed("transformer", "small operators", _function("train_transformer", "make_transformer"), COMPILING),
    Flawed("decode", "batch 1: small operators", _function("decode", "make_decode"), COMPILING),
    Flawed(
        "starved_loader",
        "a loop that waits for a DataLoader's process",
        _function("train_epoch", "make_loader"),
        ("loader_workers", "no_loader_workers"),
    ),
    Flawed("collected", "many live objects", _function("learn", "make_collected"), ("gc_rarely",)),
    Flawed(
        "threads",
        "more threads than cores",
        _function("wave", "make_wave"),
        ("threads_1", "threads_physical", *COMPILING),
    ),
    Flawed(
        "page_faults",
        "a large temporary mapped afresh",
        (str(ADVISED / "scale.py"),),
        ("malloc_keeps_pages", "jemalloc", "tcmalloc", "variant_reuse"),
    ),
    Flawed("items", "values read one by one", (str(ADVISED / "read_values.py"),), ("variant_at_once",)),
    Flawed(
        "per_node", "a Python loop over nodes", (str(ADVISED / "pass_messages.py"),), ("variant_at_once", *COMPILING)
    ),
    Flawed(
        "nested",
        "guards and size assertions of 121 modules",
        (f"{ADVISED / 'nested.py'}:call", "--inputs", f"{ADVISED / 'nested.py'}:make", "--compile"),
        ("guard_filter_all", "guard_filter_modules", "skip_guard_eval", "size_asserts_off", "aot_inductor"),
    ),
    Flawed("matmul", "nothing", _function("multiply", "make_matrices"), ()),
)


def main() -> None:
    """Advise on every program, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="default: all")
    options = parser.parse_args()
    table = Table(CLAIM)
    rows = stored_rows()
    for flawed in PROGRAMS:
        if not options.only or flawed.program in options.only:
            target, *more = flawed.options
            rows[flawed.program] = row_of(flawed, *advice(target, *more, "--quick"))
            table.add(rows[flawed.program])
            write_result(options.result, CLAIM.answered(list(rows.values()), [summary(rows)]))
    print("", summary(rows), sep="\n")


def advice(target: str, *options: object) -> tuple[dict[str, Any], float]:
    """What ``advise --json`` prints for a target, and how many seconds it took.

    Raises:
        FailedError: It could not be measured.
    """
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as work:
        words = ["advise", target, *options, "--quiet", "--output", Path(work) / "advice"]
        start_s = time.monotonic()
        return document(*words, folder=work), round(time.monotonic() - start_s, 1)


def stored_rows() -> dict[str, list[Cell]]:
    """The rows of the stored result, by program, in the order of the programs."""
    path = RESULTS / f"{CLAIM.claim}.json"
    known = {str(row[0]): list(row) for row in read_result(path).rows} if path.exists() else {}
    return {flawed.program: known[flawed.program] for flawed in PROGRAMS if flawed.program in known}


def summary(rows: Mapping[str, Sequence[Cell]]) -> str:
    """How many are right."""
    return f"{sum(bool(row[-1]) for row in rows.values())} of {len(rows)} are right."


def row_of(flawed: Flawed, advice: Mapping[str, Any], seconds: float) -> list[Cell]:
    """The advice for a program, whose remedies are ranked, as a row."""
    helping = [remedy for remedy in advice["remedies"] if remedy["verdict"] == "faster"]
    name, saves, output = None, None, None
    if helping:
        name, output = str(helping[0]["remedy"]), str(helping[0]["output"])
        saves = round(1 - float(helping[0]["wall"]["ratio"]), 4)
    return [
        flawed.program,
        flawed.flaw,
        advice["base"]["wall"]["ns"],
        advice["verdict"],
        name,
        saves,
        output,
        ", ".join(flawed.undone_by) or None,
        seconds,
        is_right(flawed, advice["verdict"], name),
    ]


def is_right(flawed: Flawed, verdict: str, first: str | None) -> bool:
    """Whether the remedy that is ranked first undoes the flaw; that nothing helps where nothing is wrong."""
    if not flawed.undone_by:
        return verdict == "work" and first is None
    return first in flawed.undone_by


if __name__ == "__main__":
    main()
