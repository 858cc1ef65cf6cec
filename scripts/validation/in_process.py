"""How far are figures that were measured in one process, as in a notebook, off from those of fresh processes?

    python -m scripts.validation.in_process [--rounds N] [CALL ...]

Each call is measured in turns both ways, round by round::

    round   fresh: 5 processes of their own | here: one interpreter that also imports, compiles, is sampled and traced

The interpreter of `here` is new in every round, as a notebook's kernel is in every session. What its one process has by chance
(where its memory lies, which caches are warm) is in the range over the rounds, and not in the interval of a single capture.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from overhead_lens import api
from overhead_lens.machine.request import STANDARD
from overhead_lens.scenario import Arguments
from overhead_lens.stored import budget_of
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.terminal.progress import progress
from scripts import command
from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="in-process",
    question="How far are figures of one process off from those of fresh processes?",
    method=(
        "Each call is measured in turns in fresh processes and in the process of an interpreter that is new in every round. "
        "The figures are medians over the rounds, with the range of those of one process. "
        "How far they are off is their difference as a share of the call's wall time in fresh processes."
    ),
    command="python -m scripts.validation.in_process",
    columns=(
        Column("call"),
        Column("of it"),
        Column("fresh processes", "ns"),
        Column("one process", "ns"),
        Column("lowest", "ns"),
        Column("highest", "ns"),
        Column("off by", "share"),
    ),
)

ROUNDS = 5
WAYS = ("fresh", "here")
_WALL = "wall"
_LEAST_SHARE = 0.01
_SMALL = torch.ones(10)
_LARGE = torch.ones(1_000_000)

Figures = Mapping[str, int]
"""ns per call of the wall and of each category."""


def python() -> int:
    """Nothing but the interpreter."""
    return sum(each * each for each in range(100))


def eager() -> torch.Tensor:
    """One small operator."""
    return _SMALL + 1


def chain() -> torch.Tensor:
    """Several small operators that allocate."""
    return torch.relu(_SMALL * 2 + 1).sum()


def large() -> torch.Tensor:
    """A kernel that takes nearly all of the call."""
    return _LARGE.sum()


CALLS: Mapping[str, tuple[Callable[[], Any], bool]] = {
    "python": (python, False),
    "eager": (eager, False),
    "compiled": (eager, True),
    "chain": (chain, False),
    "large": (large, False),
}
"""Function, and whether torch.compile is applied to it."""


def main() -> None:
    """Measure, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("calls", nargs="*", metavar="CALL", help=f"of {', '.join(CALLS)}; default: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--way", choices=WAYS, help="measure the one call once and print its figures as JSON")
    options = parser.parse_args()
    if unknown := [name for name in options.calls if name not in CALLS]:
        parser.error(f"no call {unknown[0]!r}; calls: {', '.join(CALLS)}")
    if options.way:
        print(json.dumps(measured_once(options.calls[0], options.way)))
        return
    rows = []
    print_heading(CLAIM.columns)
    for name in options.calls or CALLS:
        for row in rows_of(name, in_turns(name, options.rounds)):
            rows.append(row)
            print_row(row)
    write_result(options.result, CLAIM.answered(rows, [f"{options.rounds} rounds of each call."]))


def in_turns(name: str, rounds: int) -> dict[str, list[Figures]]:
    """Figures of every round by way.

    Raises:
        subprocess.CalledProcessError: A measurement failed.
    """
    found: dict[str, list[Figures]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            said = command.python("-m", "scripts.validation.in_process", name, "--way", way, folder=ROOT)
            found[way].append(json.loads(said.splitlines()[-1]))
    return found


def measured_once(name: str, way: str) -> Figures:
    """Measure a call one of the two ways."""
    # By the name that fresh processes import, not as ``__main__``.
    from scripts.validation import in_process

    function, compiles = in_process.CALLS[name]
    if way == "here":
        # A copy, which no import finds.
        function = FunctionType(function.__code__, function.__globals__, function.__name__)
    with tempfile.TemporaryDirectory() as folder, progress(quiet=True) as silent:
        output = Path(folder, "capture")
        path = api.record_call(
            function, Arguments(), STANDARD, silent, compile=compiles, fresh=way == "fresh", output=output
        )
        budget = budget_of(path, default_classifier()).breakdown
    assert (budget.subject.kind == "callable") == (way == "here")
    return {_WALL: budget.wall.ns, **{each.category: each.ns for each in budget.host}}


def rows_of(name: str, figures: Mapping[str, Sequence[Figures]]) -> list[list[Cell]]:
    """Rows of the wall, and of each category that either way finds a hundredth of it in."""
    walls_ns = {way: statistics.median(each[_WALL] for each in figures[way]) for way in WAYS}
    rows: list[list[Cell]] = []
    for what in (_WALL, *HOST_CATEGORIES):
        fresh, here = ([each[what] for each in figures[way]] for way in WAYS)
        medians = {"fresh": statistics.median(fresh), "here": statistics.median(here)}
        if any(medians[way] >= _LEAST_SHARE * walls_ns[way] for way in WAYS):
            off = (medians["here"] - medians["fresh"]) / walls_ns["fresh"]
            rows.append(
                [name, what, round(medians["fresh"]), round(medians["here"]), min(here), max(here), round(off, 4)]
            )
    return rows


if __name__ == "__main__":
    main()
