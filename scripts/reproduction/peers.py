"""What torch.profiler does to the time that it measures."""

from __future__ import annotations

import argparse
import subprocess
from typing import Any

from scripts.reproduction.measuring import from_estimate, last_line
from scripts.reproduction.outcomes import Outcomes, Part, RatioRow, TimeRow, Unit, outcome_of
from scripts.validation import profiler_distortion

# Compiled add1 under torch.profiler.
SOURCE = "torch.profiler of torch 2.13, a 2-core VM"
DISTORTION_NS = {"bare": 13_400.0, "traced": 19_200.0, "stacks": 44_600.0}


def measure_distortion(_options: argparse.Namespace) -> dict[str, Any]:
    """A unit: compiled add1 bare, traced and with stacks."""
    try:
        sides = profiler_distortion.measure()
    except subprocess.CalledProcessError as error:
        return dict.fromkeys(DISTORTION_NS, last_line(error.stderr))
    return {side: from_estimate(found, profiler_distortion.PROCESSES) for side, found in sides.items()}


def distortion_times(outcomes: Outcomes) -> list[TimeRow]:
    """Bare, traced and with stacks."""
    return [
        TimeRow(f"compiled add1, {side}", SOURCE, ns, outcome_of(outcomes, f"distortion/{side}"))
        for side, ns in DISTORTION_NS.items()
    ]


def distortion_ratios(outcomes: Outcomes) -> list[RatioRow]:
    """Bare over traced and over with stacks."""
    bare = outcome_of(outcomes, "distortion/bare")
    return [
        RatioRow(
            f"bare over {side}",
            SOURCE,
            DISTORTION_NS[side] / DISTORTION_NS["bare"],
            outcome_of(outcomes, f"distortion/{side}"),
            bare,
        )
        for side in ("traced", "stacks")
    ]


PARTS = (Part("peers", (Unit("distortion", measure_distortion),), distortion_times, distortion_ratios),)
