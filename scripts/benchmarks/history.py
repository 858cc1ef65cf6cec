"""Error rate and power of the change points, and the time that a history of many captures takes.

    python -m scripts.benchmarks.history [--histories 1000] [--captures 1000]

Histories are drawn (seeds 0, 1, ...): five series of which each capture scatters by 2 % (normal, or Student's t with three
degrees of freedom) and states that error; nothing changes, or one series rises in the middle. Captures are drawn on disk in a
temporary folder, with a cache folder of their own.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import numpy as np

from overhead_lens.captures.directory import CAPTURE, write_meta
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.instruments.clock.record import Clock
from overhead_lens.instruments.samples.evidence import Sampled
from overhead_lens.instruments.samples.record import SampleStacks
from overhead_lens.stats.change_points import find_cuts
from overhead_lens.stats.values import Floats
from overhead_lens.subject import Subject
from scripts.command import lens
from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="history",
    question="How often is a change point wrong, and how often is a change found?",
    method=(
        "Histories of five series are drawn whose captures scatter by 2 %. "
        "In some nothing changes, in others one series rises in the middle by so many of its standard deviations. "
        "Counted are histories with a change point, with one at the right capture, and with more than one."
    ),
    command="python -m scripts.benchmarks.history",
    columns=(
        Column("captures"),
        Column("noise"),
        Column("step", "standard deviations"),
        Column("histories"),
        Column("with a change point"),
        Column("with one at the right place"),
        Column("with more than one"),
    ),
)

_SCATTER = 0.02
_LEVELS_NS = np.array([2_000.0, 900.0, 600.0, 400.0, 100.0])
_PROCESSES = 3
_BLOCKS = 15
_BEGUN = datetime(2026, 1, 1, tzinfo=timezone.utc)
_ROW = {"calls": 5, "reference_ns": 700_000, "minor_faults": 1, "system_ns": 0, "compiles": 0}
_STACK = "main (worker.py:1);measured_loop (overhead_lens/worker/loop.py:4);{frame} {count}"
_USER = "user (user.py:1)"
_GUARD = "torch::dynamo::(anonymous namespace)::RootGuardManager::check_nopybind (libtorch_python.so)"


def main() -> None:
    """Print the rates and the times, and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--captures", type=int, default=1_000, help="of the history that is timed")
    options = parser.parse_args()
    rows: list[list[Cell]] = []
    print_heading(CLAIM.columns)
    for count, heavy, step in itertools.product((12, 30), (False, True), (0.0, 3.0, 5.0)):
        rows.append(error_rates(options.histories, count, step, heavy=heavy))
        print_row(rows[-1])
    notes = time_history(options.captures)
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


def error_rates(histories: int, count: int, step: float, *, heavy: bool) -> list[Cell]:
    """How many drawn histories of ``count`` captures have change points."""
    found = [find_cuts(*draw(seed, count, step, heavy=heavy)) for seed in range(histories)]
    return [
        count,
        "t, 3 degrees of freedom" if heavy else "normal",
        step,
        histories,
        sum(bool(cuts) for cuts in found),
        sum(any(cut.position == count // 2 for cut in cuts) for cuts in found),
        sum(len(cuts) > 1 for cuts in found),
    ]


def draw(seed: int, count: int, step: float, *, heavy: bool) -> tuple[Floats, Floats]:
    """Series and their errors, in ns; the second series rises by ``step`` standard deviations in the middle."""
    random = np.random.default_rng(seed)
    noise = random.standard_t(3, (5, count)) if heavy else random.normal(size=(5, count))
    noise[1, count // 2 :] += step
    errors = np.repeat(_LEVELS_NS[:, None] * _SCATTER, count, axis=1)
    return _LEVELS_NS[:, None] + errors * noise, errors


def time_history(count: int) -> list[str]:
    """How long ``overhead-lens history`` takes, analyzing and from its cache."""
    notes = []
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text, "captures")
        random = np.random.default_rng(0)
        for number in range(count):
            draw_capture(folder / f"c{number:05d}", number, 0.4 if number >= count // 2 else 0.0, random)
        for what in ("analyzed", "from the cache", "from the cache"):
            started = time.perf_counter()
            said = lens("history", folder, "--json", variables={"XDG_CACHE_HOME": text})
            seconds = time.perf_counter() - started
            (series,) = json.loads(said)["series"]
            found = [change["sentence"] for segment in series["segments"] for change in segment["change_points"]]
            notes.append(f"{count:,} captures, {what}: {seconds:.1f} s; {'; '.join(found) or 'no change point'}")
    return notes


def draw_capture(path: Path, number: int, rise: float, random: np.random.Generator) -> None:
    """A complete capture of three processes whose guard takes ``rise`` longer, as a share of it."""
    path.mkdir(parents=True)
    call_ns = 2_000 * (1 + random.normal(0, _SCATTER)) + 500 * rise
    clock, samples = Clock(), SampleStacks()
    clock.rows = [
        {**_ROW, "process": process, "block": block, "wall_ns": round(5 * call_ns * (1 + random.normal(0, 0.01)))}
        for process, block in itertools.product(range(_PROCESSES), range(_BLOCKS))
    ]
    counts = {_USER: 750, _GUARD: round(random.normal(250 * (1 + rise), 10))}
    folded = "\n".join(_STACK.format(frame=frame, count=count) for frame, count in counts.items())
    samples.folded, samples.taken = [folded] * _PROCESSES, Sampled(_PROCESSES * sum(counts.values()))
    notes = {each.name: msgspec.to_builtins(each.write(path)) for each in (clock, samples)}
    environment = {"host": "h", "cpu": "c", "torch": "2.13.0", "python": "3.11", "threads": 2}
    meta = CaptureMeta(
        subject=Subject("scenario", "drawn", "drawn", {"size": 10}, compile=True),
        environment={**environment, "git_commit": f"{number:010x}{0:030x}"},
        started=(_BEGUN + timedelta(hours=number)).isoformat(),
        compile_options={},
        instruments=notes,
    )
    write_meta(path, CAPTURE, meta)


if __name__ == "__main__":
    main()
