"""What does ``overhead-lens run`` cost the program? Its bare steps and its whole time, inside and outside, in turns.

    python -m scripts.validation.run_cost [--pairs N] [--steps N]

The script is ``scripts/validation/laboratory/stepped.py``, which times its steps itself: outside, the median of these is a step;
inside, that of the stored steps during which no instrument was at work.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

from overhead_lens.errors import MeasurementError
from overhead_lens.program.area import Phase
from overhead_lens.studies.run.stored import read_run
from scripts.command import python, run_document
from scripts.results import Cell, Claim, Table, columns_of

CLAIM = Claim(
    claim="run-cost",
    question="What does `run` cost the program?",
    method=(
        "A training script is run by itself and by `overhead-lens run`, in turns, the first of a pair changing. "
        "A step is the median of the steps that the script times itself; inside, of the steps that no instrument disturbed. "
        "The whole time is that of the command, from start to end."
    ),
    command="python -m scripts.validation.run_cost",
    columns=columns_of(
        "pair | step outside [ns] | step inside [ns] | inside less outside [share] | whole time outside [s] | "
        "whole time inside [s] | it grew by [s]"
    ),
)

STEPPED = Path(__file__).with_name("laboratory") / "stepped.py"

_MOST_STEP = 0.02
_MOST_GROWTH = 0.25
_MOST_GROWTH_S = 15.0


def main() -> None:
    """Measure the pairs, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=40_000, help="steps of a run")
    options = parser.parse_args()
    table = Table(CLAIM)
    for pair in range(options.pairs):
        table.add(row_of(pair, options.steps))
    notes = notes_of([(float(row[3] or 0), float(row[4] or 0), float(row[5] or 0)) for row in table.rows])
    table.write(options.result, notes)


def row_of(pair: int, steps: int) -> list[Cell]:
    """One run by itself and one by the tool, the first of them changing from pair to pair."""
    measured = {side: side(steps) for side in ((outside, inside) if pair % 2 == 0 else (inside, outside))}
    (bare_ns, bare_s), (step_ns, whole_s) = measured[outside], measured[inside]
    return [pair + 1, bare_ns, step_ns, round(step_ns / bare_ns - 1, 5), bare_s, whole_s, round(whole_s - bare_s, 3)]


def outside(steps: int) -> tuple[float, float]:
    """The median step, ns, and the whole time, s, of the script by itself."""
    start_ns = time.perf_counter_ns()
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        path = Path(folder) / "times"
        python(STEPPED, "--steps", steps, "--times", path, folder=folder)
        whole_s = _seconds_since(start_ns)
        times = array("q")
        times.frombytes(path.read_bytes())
    return statistics.median(times), whole_s


def inside(steps: int) -> tuple[float, float]:
    """The median bare step, ns, and the whole time, s, by the tool."""
    start_ns = time.perf_counter_ns()
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        path = Path(folder) / "run"
        run_document(STEPPED, "--steps", steps, options=("--output", path))
        whole_s = _seconds_since(start_ns)
        table = read_run(path).steps
    if table is None:
        raise MeasurementError("the run has no steps")
    bare = table[table["phase"] == Phase.BARE]
    return float((bare["end_ns"] - bare["begin_ns"]).median()), whole_s


def notes_of(pairs: Sequence[tuple[float, float, float]]) -> list[str]:
    """What the pairs say together: the step's difference as a share, whole times outside and inside in s."""
    differences = [difference for difference, _, _ in pairs]
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.nan
    outside_s, inside_s = (statistics.fmean(pair[at] for pair in pairs) for at in (1, 2))
    growth_s = inside_s - outside_s
    allowed_s = max(_MOST_GROWTH * outside_s, _MOST_GROWTH_S)
    step, whole = ("within" if holds else "not within" for holds in (abs(mean) <= _MOST_STEP, growth_s <= allowed_s))
    return [
        f"Steps inside differ by {mean:+.2%} (standard error {error:.2%}), {step} the goal of {_MOST_STEP:.0%}.",
        f"The whole run takes {growth_s:.1f} s more, {growth_s / outside_s:.0%}, {whole} the goal of {allowed_s:.1f} s.",
    ]


def _seconds_since(start_ns: int) -> float:
    return round((time.perf_counter_ns() - start_ns) / 1e9, 3)


if __name__ == "__main__":
    main()
