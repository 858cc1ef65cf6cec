"""Does `advise` save on the nested module what bare loops say? Size assertions off, and all guards filtered.

python -m scripts.validation.advise_nested [--processes N]
"""

from __future__ import annotations

import statistics

from scripts.command import python
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.advising import ADVISED, Advised, advice

CLAIM = Claim(
    claim="advise-nested",
    question="Does `advise` save what bare loops say?",
    method=(
        "121 small Linears, nested four deep, compiled: the call as it is, without size assertions and with all guards filtered. "
        "Each is timed by a bare loop in fresh processes, in turns, and by `advise --quick`. "
        "The ratio of the times must be the same within 10 %."
    ),
    command="python -m scripts.validation.advise_nested",
    columns=(
        Column("remedy"),
        Column("bare loop as it is", "ns"),
        Column("bare loop with it", "ns"),
        Column("ratio of bare loops"),
        Column("ratio that advise says"),
        Column("off by", "share"),
        Column("within 10 %"),
    ),
)

MODULE = ADVISED / "nested.py"
# A remedy, and what a user would type for it.
BY_HAND = {
    "size_asserts_off": ({"TORCHINDUCTOR_SIZE_ASSERTS": "0"}, "{}"),
    "guard_filter_all": ({}, '{"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}'),
}
_MOST_OFF = 0.1

_CODE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch
from nested import make, call
torch.set_num_threads(1)
model, x = make()
compiled = torch.compile(call, options={options})
with torch.no_grad():
    for _ in range(2000):
        compiled(model, x)
    times = []
    for _ in range(40):
        start = time.perf_counter_ns()
        for _ in range(200):
            compiled(model, x)
        times.append((time.perf_counter_ns() - start) / 200)
print(sorted(times)[len(times) // 2])
"""


def main() -> None:
    """Measure both ways, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--processes", type=int, default=5, help="bare loops of each kind")
    options = parser.parse_args()
    print_heading(CLAIM.columns)
    times: dict[str, list[float]] = {name: [] for name in ("", *BY_HAND)}
    for _ in range(options.processes):
        for name, found in times.items():
            found.append(bare_ns(name))
    bare = {name: statistics.median(found) for name, found in times.items()}
    advised = advice(f"{MODULE}:call", "--inputs", f"{MODULE}:make", "--compile", "--quick")
    rows = [row_of(name, bare[""], bare[name], advised) for name in BY_HAND]
    for row in rows:
        print_row(row)
    first = ", ".join(remedy["remedy"] for remedy in advised.measured if remedy["verdict"] == "faster")
    notes = [f"Faster, the most first: {first}.", f"`advise` took {advised.seconds:.0f} s."]
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def bare_ns(name: str) -> float:
    """Ns per call of a bare loop in a fresh process, with a remedy by hand or none."""
    variables, keywords = BY_HAND.get(name, ({}, "{}"))
    return float(python("-c", _CODE.replace("{options}", keywords), MODULE.parent, variables=variables))


def row_of(name: str, base_ns: float, new_ns: float, advised: Advised) -> list[Cell]:
    """A remedy by bare loops and by ``advise``."""
    bare, said = new_ns / base_ns, advised.remedy(name)["wall"]["ratio"]
    off = said / bare - 1
    return [name, round(base_ns), round(new_ns), round(bare, 4), round(said, 4), round(off, 4), abs(off) <= _MOST_OFF]


if __name__ == "__main__":
    main()
