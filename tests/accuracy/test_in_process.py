"""How far one process is off: the table of drawn figures."""

from __future__ import annotations

import subprocess
import sys

from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from scripts.results import ROOT
from scripts.validation.in_process import Figures, rows_of


def figures(**host: int) -> Figures:
    return {"wall": sum(host.values()), **dict.fromkeys(HOST_CATEGORIES, 0), **host}


def test_a_row_for_the_wall_and_each_category_that_counts() -> None:
    fresh = [
        figures(python=600, kernel=395, wait=5),
        figures(python=610, kernel=385, wait=5),
        figures(python=500, kernel=500),
    ]
    here = [figures(python=700, kernel=400), figures(python=660, kernel=340), figures(python=900, kernel=405)]
    assert rows_of("eager", {"fresh": fresh, "here": here}) == [
        ["eager", "wall", 1_000, 1_100, 1_000, 1_305, 0.1],
        ["eager", "python", 600, 700, 660, 900, 0.1],
        ["eager", "kernel", 395, 400, 340, 405, 0.005],
    ]


def test_a_call_that_it_does_not_know_is_a_line() -> None:
    command = [sys.executable, "-m", "scripts.validation.in_process", "eagre"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "in_process.py: error: no call 'eagre'; calls: python, eager, compiled, chain, large",
    )
