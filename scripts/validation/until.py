"""How often does the interval of a wall time contain the truth if `profile --until` ends as soon as it is narrow?

    python -m scripts.validation.until [--captures N] [--until SHARE ...]

Whoever looks again and again and stops when the interval is narrow stops too soon where it is narrow by chance. Captures are
drawn as in ``wall_interval``, the product's interval is made at the numbers of processes at which the product looks, and the
first that is narrow enough is kept, or the last.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from overhead_lens.stats.bootstrap import median_over_processes
from overhead_lens.terminal.refine import LEAST_PROCESSES, LOOKS_EVERY, MOST_PROCESSES
from scripts.results import Claim, Column, print_heading, print_row, write_result
from scripts.validation.wall_interval import BLOCK_SHARE, BLOCKS, PROCESS_SHARE, TRUTH_NS, drawn_blocks

CLAIM = Claim(
    claim="until",
    question="Does an interval still hold the truth if the recording ends when it is narrow?",
    method=(
        "Captures are drawn as processes with levels of their own, normally distributed, and blocks that scatter about them. "
        f"The product's interval is made after {LEAST_PROCESSES} processes and every {LOOKS_EVERY} more, up to {MOST_PROCESSES}; "
        "the first whose half-width is at most the share that was asked for is kept, or the last."
    ),
    command="python -m scripts.validation.until",
    columns=(
        Column("--until", "share"),
        Column("captures"),
        Column("processes, median"),
        Column("narrow enough", "share"),
        Column("intervals that contain the truth", "share"),
        Column("of as many processes without looking", "share"),
    ),
    about=("overhead_lens/stats", "overhead_lens/terminal/refine.py"),
)

_SEED = 20_261_124


@dataclass(frozen=True, slots=True)
class Ended:
    """A drawn recording that has ended: its processes, whether its interval was narrow enough, whether it holds the truth."""

    processes: int
    narrow: bool
    holds: bool


def main() -> None:
    """Simulate, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--captures", type=int, default=4_000)
    parser.add_argument("--until", type=float, nargs="+", default=[0.003, 0.005, 0.01, 0.02, 0.03])
    options = parser.parse_args()
    rows = []
    print_heading(CLAIM.columns)
    for share in options.until:
        ended = [recording(share, number) for number in range(options.captures)]
        unseen = [_holds(each.processes, number) for number, each in enumerate(ended)]
        rows.append(
            [
                share,
                len(ended),
                int(statistics.median(each.processes for each in ended)),
                round(statistics.fmean(each.narrow for each in ended), 4),
                round(statistics.fmean(each.holds for each in ended), 4),
                round(statistics.fmean(unseen), 4),
            ]
        )
        print_row(rows[-1])
    notes = [
        (
            f"Processes differ by {PROCESS_SHARE:.0%} (standard deviation), the {BLOCKS} blocks of each by {BLOCK_SHARE:.0%}; "
            f"seed {_SEED}."
        )
    ]
    write_result(options.result, CLAIM.answered(rows, notes))


def recording(share: float, number: int) -> Ended:
    """The drawn recording of that number, ended by the first interval that is narrow enough."""
    blocks = drawn_blocks(np.random.default_rng((_SEED, number)), MOST_PROCESSES)
    for processes in looks():
        estimate = median_over_processes(blocks[:processes])
        low, high = estimate.interval()
        narrow = (high - low) / 2 <= share * estimate.value
        if narrow or processes == MOST_PROCESSES:
            return Ended(processes, narrow, low <= TRUTH_NS <= high)
    raise AssertionError("the last look is at the last process")


def looks() -> Iterator[int]:
    """The numbers of processes at which the product looks."""
    yield from range(LEAST_PROCESSES, MOST_PROCESSES + 1, LOOKS_EVERY)


def _holds(processes: int, number: int) -> bool:
    """Whether the interval of another capture, of so many processes, holds the truth."""
    low, high = median_over_processes(drawn_blocks(np.random.default_rng((_SEED, number, 1)), processes)).interval()
    return low <= TRUTH_NS <= high


if __name__ == "__main__":
    main()
