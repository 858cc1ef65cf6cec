"""How repeatable are budgets in instructions, and is a change of 1 % blamed on the right category?

    python -m scripts.benchmarks.instructions [--runs N] [--changes N] [--sites NAME ...]

Changes: ``laboratory/counted.py`` counts down in Python code, in a kernel, on the way of an operator to its kernel or in the CPU
allocator, beside an eager or a compiled operator, or has a compiled call guard more values. There is made more of it until the
call takes 1 % more instructions, and the change is to be blamed on that category as ``check`` blames. Spread: ``add1`` eager and
compiled, counted N times, each in a worker process of its own and beside an environment variable of another length, which moves
what start-up leaves in memory; largest less smallest count, relative to the smaller.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from overhead_lens.budget.instructions import instruction_budget
from overhead_lens.budget.model import InstructionBudget
from overhead_lens.captures.files import CALLGRIND
from overhead_lens.comparison.instructions import compare_instructions
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instructions.callgrind import count_instructions
from overhead_lens.machine.request import Request
from overhead_lens.readers.callgrind import read_callgrind
from overhead_lens.target import Target, parse_target
from overhead_lens.taxonomy.classifier import Classifier, default_classifier
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.known_costs.sites import LABORATORY

CLAIM = Claim(
    claim="instructions",
    question="Are instruction counts repeatable, and is 1 % more of them blamed on the right category?",
    method=(
        "A call counts down in a known place, until it takes 1 % more instructions than before. "
        "Every count is of a fresh worker process under callgrind. "
        "The change is blamed as check blames, and the spread of equal calls stands in the notes."
    ),
    command="python -m scripts.benchmarks.instructions",
    columns=(
        Column("more steps in"),
        Column("right category"),
        Column("before", "instructions"),
        Column("change", "instructions"),
        Column("blamed"),
        Column("in the right category", "instructions"),
        Column("in others"),
    ),
)

COUNTED = LABORATORY / "counted.py"
RULES = LABORATORY / "native" / "counted.toml"

CHANGE = 0.01
_CALLS = 200
_TIMEOUT_S = 300.0
_STEPS = 100
_PADDING = "OVERHEAD_LENS_PADDING"
_PADDING_LENGTH = 333


@dataclass(frozen=True, slots=True)
class Site:
    """Where the counted loop lies, and whom a longer one is to be blamed on."""

    name: str
    category: str
    variant: str
    compiled: bool = False
    count_allocations: bool = False


SITES = (
    Site("python, eager", "python", "python"),
    Site("kernel, eager", "kernel", "kernel"),
    Site("dispatcher, eager", "dispatcher", "dispatch"),
    Site("allocation, eager", "allocation", "negate", count_allocations=True),
    Site("python, beside compiled", "python", "python_compiled"),
    Site("kernel, compiled", "kernel", "kernel", compiled=True),
    Site("dispatcher, compiled", "dispatcher", "dispatch", compiled=True),
    Site("allocation, compiled", "allocation", "negate", compiled=True, count_allocations=True),
    Site("guard, compiled", "guard", "guarded", compiled=True),
)


def main() -> None:
    """Count, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="counts of add1, eager and compiled each; 0 for none")
    parser.add_argument("--changes", type=int, default=1, help="how often each change is measured")
    parser.add_argument("--sites", nargs="+", help="sites whose name begins with one of these; default: all")
    options = parser.parse_args()
    chosen = [site for site in SITES if not options.sites or site.name.startswith(tuple(options.sites))]
    started_s = time.monotonic()
    rows: list[list[Cell]] = []
    step_costs: dict[str, float] = {}
    print_heading(CLAIM.columns)
    for site in chosen:
        for _ in range(options.changes):
            rows.append(change(site, step_costs))
            print_row(rows[-1])
    notes = [spread(options.runs, compiled=compiled) for compiled in (False, True) if options.runs]
    notes.append(f"This took {time.monotonic() - started_s:.0f} s.")
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def change(site: Site, step_costs: dict[str, float]) -> list[Cell]:
    """Make the loop of a site longer by 1 % of the call and see which categories move.

    Args:
        site: Where.
        step_costs: Instructions of a step by category, filled here.
    """

    def counted(steps: int) -> InstructionBudget:
        params = {"steps": str(steps), "count_allocations": str(site.count_allocations).lower()}
        return count(Target(site.name, COUNTED, name=site.variant), params, compiled=site.compiled)

    base = counted(_STEPS)
    # A step costs the same beside an eager and a compiled operator: measured once per category.
    if site.category not in step_costs:
        step_costs[site.category] = (counted(2 * _STEPS).count - base.count) / _STEPS
    delta = compare_instructions(base, counted(_STEPS + round(CHANGE * base.count / step_costs[site.category])))
    moved = {each.category: each.delta_count for each in delta.host if each.delta_count}
    others = ", ".join(f"{name} {number:+,}" for name, number in moved.items() if name != site.category)
    blamed = ", ".join(delta.blame) or "none"
    right = moved.get(site.category, 0)
    return [site.name, site.category, base.count, delta.delta_count, blamed, right, others or "0"]


def spread(runs: int, *, compiled: bool) -> str:
    """Counts of ``add1`` and how far they lie apart, in words."""
    seen = []
    for run in range(runs):
        os.environ[_PADDING] = "x" * (_PADDING_LENGTH * run)
        seen.append(count(parse_target("add1"), {}, compiled=compiled))
    del os.environ[_PADDING]
    names = [each.category for each in seen[0].host if each.count]
    apart = {name: _apart([each.category(name).count for each in seen]) for name in names}
    widest = max(apart, key=lambda name: apart[name])
    return (
        f"add1 {'compiled' if compiled else 'eager'}, {runs} runs: {seen[0].count:,} instructions per call, "
        f"{_apart([each.counted for each in seen]):.4%} apart in all, at most {apart[widest]:.3%} in a category ({widest})."
    )


def count(target: Target, params: Mapping[str, str], *, compiled: bool) -> InstructionBudget:
    """Count one call in a fresh process.

    Raises:
        MeasurementError: It cannot be counted.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        request = Request(
            target=target,
            params=params,
            compile_options={} if compiled else None,
            output=folder,
            parent=folder,
            timeout_s=_TIMEOUT_S,
        )
        counted = count_instructions(request.load_arguments(), _CALLS, folder, request.timeout_s)
        if counted.reason is not None:
            raise MeasurementError(counted.reason)
        return instruction_budget(read_callgrind(folder / CALLGRIND), counted.calls, classifier())


@lru_cache(maxsize=1)
def classifier() -> Classifier:
    """The built-in rules and those of the laboratory."""
    return default_classifier(RULES)


def _apart(values: Sequence[int]) -> float:
    return max(values) / max(1, min(values)) - 1


if __name__ == "__main__":
    main()
