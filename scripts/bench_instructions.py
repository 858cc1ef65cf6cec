"""How repeatable are budgets in instructions, and is a change of 1 % blamed on the right category?

    python scripts/bench_instructions.py [--runs N] [--changes N] [--json FILE]

Spread: ``add1`` eager and compiled, counted N times, each in a worker process of its own; largest less smallest count, in all and
of each category, relative to the smaller. Changes: ``laboratory/counted.py`` counts down in Python code, in a kernel or in
the CPU allocator, beside an eager or a compiled operator; its loop is made longer until the call takes 1 % more instructions,
and the change is to be blamed on that category and on no other.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from overhead_lens.analysis.instructions import instruction_budget
from overhead_lens.analysis.model import InstructionBudget
from overhead_lens.capture.instructions import count_instructions
from overhead_lens.categories import Classifier, default_classifier
from overhead_lens.errors import MeasurementError
from overhead_lens.trace.callgrind import read_callgrind

ROOT = Path(__file__).resolve().parent
ADD1 = ROOT.parent / "scenarios" / "add1.py"
COUNTED = ROOT / "laboratory" / "counted.py"
RULES = ROOT / "laboratory" / "counted.toml"

CHANGE = 0.01
_CALLS = 200
_TIMEOUT_S = 300.0
_STEPS = 100


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
    Site("allocation, eager", "allocation", "negate", count_allocations=True),
    Site("python, beside compiled", "python", "python_compiled"),
    Site("kernel, compiled", "kernel", "kernel", compiled=True),
    Site("allocation, compiled", "allocation", "negate", compiled=True, count_allocations=True),
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
    seen = [budget(ADD1, None, {}, compiled=compiled) for _ in range(runs)]
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
    # A step costs the same beside an eager and a compiled operator: measured once.
    if site.category not in step_costs:
        step_costs[site.category] = (counted(2 * _STEPS).count - base.count) / _STEPS
    per_step = step_costs[site.category]
    new = counted(_STEPS + round(CHANGE * base.count / per_step))
    moved = {
        after.category: after.count - before.count
        for before, after in zip(base.host, new.host, strict=True)
        if after.count != before.count
    }
    whole = new.count - base.count
    return {
        "site": site.name,
        "category": site.category,
        "base": base.count,
        "instructions_per_step": per_step,
        "change": whole,
        "moved": moved,
        "blamed": max(moved, key=lambda name: moved[name]),
        "blamed_share": moved.get(site.category, 0) / whole,
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
    print("| add1 | instructions per call | spread of the total | largest spread of a category |\n|---|---|---|---|")
    for compiled in (False, True):
        row = spread(asked.runs, compiled=compiled)
        result["spread"].append(row)
        worst = max(row["spread_by_category"], key=lambda name: row["spread_by_category"][name])
        count = sum(values[0] for values in row["counts"].values())
        worst_spread = f"{row['spread_by_category'][worst]:.3%} ({worst})"
        print(f"| {row['mode']} | {count:,} | {row['spread']:.4%} | {worst_spread} |", flush=True)
    print("\n| longer loop in | base | change | blamed on | right share of the change |\n|---|---|---|---|---|")
    step_costs: dict[str, float] = {}
    for site in [site for site in SITES for _ in range(asked.changes)]:
        row = change(site, step_costs)
        result["change"].append(row)
        moved = f"{row['change']:+,} ({row['change'] / row['base']:.2%})"
        print(f"| {site.name} | {row['base']:,} | {moved} | {row['blamed']} | {row['blamed_share']:.1%} |", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
