"""How repeatable are budgets in instructions, and is a change of 1 % blamed on the right category?

    python scripts/bench_instructions.py [--runs N] [--changes N] [--json FILE]

Spread: ``add1`` eager and compiled, counted N times, each in a worker process of its own and beside an environment variable of
another length, which moves what start-up leaves in memory; largest less smallest count, in all and of each category,
relative to the smaller. Changes: ``laboratory/counted.py`` counts down in Python code, in a kernel, on the way of an operator to
its kernel or in the CPU allocator, beside an eager or a compiled operator, or has a compiled call guard more values. There is
made more of it until the call takes 1 % more instructions, and the change is to be blamed on that category as ``check`` blames.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from overhead_lens.budget.instructions import instruction_budget
from overhead_lens.budget.model import InstructionBudget
from overhead_lens.compare.instructions import compare_instructions
from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.instructions.record import count_instructions
from overhead_lens.readers.callgrind import read_callgrind
from overhead_lens.taxonomy.categories import Classifier, default_classifier

ROOT = Path(__file__).resolve().parent
ADD1 = ROOT.parent / "scenarios" / "add1.py"
COUNTED = ROOT / "laboratory" / "counted.py"
RULES = ROOT / "laboratory" / "counted.toml"

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


@lru_cache(maxsize=1)
def classifier() -> Classifier:
    """The built-in rules and those of the laboratory."""
    return default_classifier(RULES)


def budget(path: Path, variant: str | None, params: dict[str, str], *, compiled: bool) -> InstructionBudget:
    """Count one call in a fresh process."""
    load = {"path": str(path), "variant": variant, "params": params, "compile_options": {} if compiled else None}
    with tempfile.TemporaryDirectory() as folder:
        counted = count_instructions(load, _CALLS, Path(folder), _TIMEOUT_S)
        if counted["reason"] is not None:
            raise MeasurementError(counted["reason"])
        return instruction_budget(read_callgrind(Path(folder, "callgrind.out.gz")), counted["calls"], classifier())


def spread(runs: int, *, compiled: bool) -> dict[str, Any]:
    """Counts of ``add1`` and how far they lie apart."""
    seen = []
    for run in range(runs):
        os.environ[_PADDING] = "x" * (_PADDING_LENGTH * run)
        seen.append(budget(ADD1, None, {}, compiled=compiled))
    del os.environ[_PADDING]
    names = [each.category for each in seen[0].host if each.count]
    counts = {name: [each.category(name).count for each in seen] for name in names}
    return {
        "mode": "compiled" if compiled else "eager",
        "counted": [each.counted for each in seen],
        "counts": counts,
        "spread": _apart([each.counted for each in seen]),
        "spread_by_category": {name: _apart(values) for name, values in counts.items()},
    }


def change(site: Site, step_costs: dict[str, float]) -> dict[str, Any]:
    """Make the loop of ``site`` longer by 1 % of the call and see which categories move.

    Args:
        site: Where.
        step_costs: Instructions of a step by category, filled here.
    """

    def counted(steps: int) -> InstructionBudget:
        params = {"steps": str(steps), "count_allocations": str(site.count_allocations).lower()}
        return budget(COUNTED, site.variant, params, compiled=site.compiled)

    base = counted(_STEPS)
    # A step costs the same beside an eager and a compiled operator: measured once per category.
    if site.category not in step_costs:
        step_costs[site.category] = (counted(2 * _STEPS).count - base.count) / _STEPS
    per_step = step_costs[site.category]
    new = counted(_STEPS + round(CHANGE * base.count / per_step))
    delta = compare_instructions(base, new)
    moved = {each.category: each.delta_count for each in delta.host if each.delta_count}
    return {
        "site": site.name,
        "category": site.category,
        "base": base.count,
        "instructions_per_step": per_step,
        "change": delta.delta_count,
        "moved": moved,
        "blamed": list(delta.blame),
    }


def _apart(values: list[int]) -> float:
    return max(values) / max(1, min(values)) - 1


def main() -> None:
    """Count, print tables, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--changes", type=int, default=1, help="how often each change is measured")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    result: dict[str, Any] = {"spread": [], "change": []}
    started_s = time.monotonic()
    print("| add1 | instructions per call | spread of the total | largest spread of a category |\n|---|---|---|---|")
    for compiled in (False, True):
        row = spread(asked.runs, compiled=compiled)
        result["spread"].append(row)
        worst = max(row["spread_by_category"], key=lambda name: row["spread_by_category"][name])
        count = sum(values[0] for values in row["counts"].values())
        worst_spread = f"{row['spread_by_category'][worst]:.3%} ({worst})"
        print(f"| {row['mode']} | {count:,} | {row['spread']:.4%} | {worst_spread} |", flush=True)
    print("\n| more steps in | base | change | blamed | in that category | in others |\n|---|---|---|---|---|---|")
    step_costs: dict[str, float] = {}
    for site in [site for site in SITES for _ in range(asked.changes)]:
        row = change(site, step_costs)
        result["change"].append(row)
        whole = f"{row['change']:+,} ({row['change'] / row['base']:.2%})"
        right = row["moved"].get(site.category, 0)
        others = ", ".join(f"{name} {n:+,}" for name, n in row["moved"].items() if name != site.category) or "0"
        blamed = ", ".join(row["blamed"]) or "none"
        print(f"| {site.name} | {row['base']:,} | {whole} | {blamed} | {right:+,} | {others} |", flush=True)
    print(f"\nThis took {time.monotonic() - started_s:.0f} s.")
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
