"""How much slower is a process of five threads while it is watched at the default rate, and after?

python -m scripts.validation.attach_cost [--seconds 20] [--rounds 5]
"""

from __future__ import annotations

import bisect
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from scripts.results import Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.attach_agrees import asked_of
from scripts.validation.attached import started

CLAIM = Claim(
    claim="attach-cost",
    question="How much slower is a process of five threads while it is watched, and after?",
    method=(
        "A training loop beside four other threads writes down how many steps it has made, five times a second. "
        "It is watched at the default rate, from the start of the command to its end. "
        "Its own steps a second are compared with what `attach` says that watching cost, and afterwards with those of "
        "a twin that was left alone for as long."
    ),
    command="python -m scripts.validation.attach_cost",
    columns=(
        Column("round"),
        Column("before", "steps/s"),
        Column("while watched", "steps/s"),
        Column("after", "steps/s"),
        Column("slower while watched", "share"),
        Column("as attach says", "share"),
        Column("slower after", "share"),
        Column("the twin slower after", "share"),
        Column("slower after than the twin", "share"),
    ),
)

ALONE_S = 10.0

# What the command needs before it starts py-spy: its imports, and two seconds of looking at the CPU clock.
START_S = 4.0

# Time on the monotonic clock, and steps until then.
Progress = list[tuple[float, int]]


def main() -> None:
    """Watch, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows: list[list[Cell]] = []
    print_heading(CLAIM.columns)
    for number in range(options.rounds):
        rows.append([number, *row_of(number, options.seconds)])
        print_row(rows[-1])
    notes = notes_of(rows)
    print("", *notes, sep="\n")
    asked = f"{CLAIM.command} --seconds {options.seconds:g} --rounds {options.rounds}"
    write_result(options.result, replace(CLAIM, command=asked).answered(rows, notes))


@dataclass(frozen=True, slots=True)
class Speeds:
    """Steps a second of a loop before, while and after it is watched, and what ``attach`` says that it cost."""

    before: float
    during: float
    after: float
    said: float | None = None

    @property
    def slower_after(self) -> float:
        """Share of the speed before that is missing after."""
        return 1 - self.after / self.before


def row_of(number: int, seconds: float) -> list[Cell]:
    """A loop that is watched and its twin, which is not, in turns that change from round to round."""
    if number % 2:
        twin = undisturbed(seconds)
        loop = watched(seconds)
    else:
        loop = watched(seconds)
        twin = undisturbed(seconds)
    rates = [round(value, 1) for value in (loop.before, loop.during, loop.after)]
    slower = (1 - loop.during / loop.before, loop.slower_after, twin.slower_after)
    during, after, of_twin = (round(share, 4) for share in slower)
    than_twin = 1 - (1 - loop.slower_after) / (1 - twin.slower_after)
    return [*rates, during, loop.said, after, of_twin, round(than_twin, 4)]


def watched(seconds: float) -> Speeds:
    """A loop that is watched."""
    with stepping() as (pid, progress), tempfile.TemporaryDirectory() as folder:
        time.sleep(ALONE_S)
        begun_s = time.monotonic()
        found = asked_of("attach", str(pid), "--duration", f"{seconds:g}", "-o", f"{folder}/attach")
        ended_s = time.monotonic()
        time.sleep(ALONE_S)
        # py-spy has ended when the budget is made: the last second is the analysis.
        until_s = min(begun_s + START_S + found["duration_ns"] / 1e9, ended_s)
        return speeds(progress, begun_s, until_s, ended_s, found["slowdown_share"])


def undisturbed(seconds: float) -> Speeds:
    """The same loop, left alone for as long."""
    with stepping() as (_, progress):
        time.sleep(ALONE_S)
        begun_s = time.monotonic()
        time.sleep(START_S + seconds)
        ended_s = time.monotonic()
        time.sleep(ALONE_S)
        return speeds(progress, begun_s, ended_s, ended_s)


@contextmanager
def stepping() -> Iterator[tuple[int, Progress]]:
    """A loop that runs while the block does: its process, and its progress so far."""
    progress: Progress = []
    with started("threads") as loop:
        reader = threading.Thread(target=_read, args=(loop.stdout, progress), daemon=True)
        reader.start()
        yield loop.pid, progress
    reader.join()


def speeds(progress: Progress, begun_s: float, until_s: float, ended_s: float, said: float | None = None) -> Speeds:
    """Speeds before ``begun_s``, from when sampling has started until ``until_s``, and after ``ended_s``."""
    return Speeds(
        rate(progress, begun_s - ALONE_S + 1, begun_s),
        rate(progress, begun_s + START_S, until_s),
        rate(progress, ended_s + 1, ended_s + ALONE_S - 1),
        said,
    )


def notes_of(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """What the rounds say together."""
    during, _, _, _, than_twin = ([float(row[at] or 0) for row in rows] for at in range(4, 9))
    spread = statistics.stdev(than_twin) / math.sqrt(len(rows)) if len(rows) > 1 else math.nan
    return [
        f"The largest slow-down is {max(during):.1%}, the median {statistics.median(during):.1%}.",
        f"Afterwards it is {statistics.fmean(than_twin):+.1%} slower than its twin (standard error {spread:.1%}).",
    ]


def rate(progress: Progress, start_s: float, end_s: float) -> float:
    """Steps a second between two moments."""
    times = [at for at, _ in progress]
    first = progress[bisect.bisect_left(times, start_s)]
    last = progress[min(len(progress), bisect.bisect_right(times, end_s)) - 1]
    return (last[1] - first[1]) / (last[0] - first[0])


def _read(lines: Sequence[str], progress: Progress) -> None:
    for line in lines:
        at_s, steps = line.split()
        progress.append((float(at_s), int(steps)))


if __name__ == "__main__":
    main()
