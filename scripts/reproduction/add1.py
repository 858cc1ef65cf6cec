"""``add1``: eager and compiled, and the rungs of its ladder."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overhead_lens.studies.ladder.analysis import RUNGS
from scripts.reproduction.measuring import profiled, run_tool
from scripts.reproduction.outcomes import Call, Part, RatioRow, TimeRow, Unit
from scripts.reproduction.published import Published, figures, published_of

INFERENCE = str(Path(__file__).with_name("add1_inference.py"))
ENDS_OF_THE_POST = ("compiled, before the changes", "compiled, after the changes")
ADD1_CALLS = (
    Call("eager", "add1"),
    Call("compiled", "add1", compile=True),
    Call("inference-eager", INFERENCE),
    Call("inference-compiled", INFERENCE, compile=True),
    Call("grad-eager", "add1", params={"requires_grad": "true"}),
    Call("grad-compiled", "add1", compile=True, params={"requires_grad": "true"}),
)
PAIRS = (("eager", "compiled"), ("inference-eager", "inference-compiled"), ("grad-eager", "grad-compiled"))


def _figures(call: Call) -> list[Published]:
    """Published figures of a call; of the post that reports many steps the first and the last."""
    found = published_of(Path(call.target).stem, compile=call.compile, params=call.params)
    steps = call.name == "compiled"
    return [each for each in found if not steps or "issue" in each.source or each.label in ENDS_OF_THE_POST]


FIGURES = {call.name: _figures(call) for call in ADD1_CALLS}
ADD1_TIMES = [
    TimeRow(figure.label, figure.source, figure.ns, name) for name, found in FIGURES.items() for figure in found
]
# Eager over compiled, where one source has both.
ADD1_RATIOS = [
    RatioRow(f"eager over {new.label}", new.source, new.ns / old.ns, compiled, eager)
    for eager, compiled in PAIRS
    for old, new in itertools.product(FIGURES[eager], FIGURES[compiled])
    if old.source == new.source
]


def measure_ladder(_options: argparse.Namespace) -> dict[str, Any]:
    """A unit: the rungs of ``overhead-lens ladder add1``."""
    done = run_tool(["ladder", "add1"])
    if isinstance(done, str):
        return dict.fromkeys(RUNGS, done)
    return {rung["name"]: from_rung(rung) for rung in done["rungs"]}


def from_rung(rung: Mapping[str, Any]) -> dict[str, Any] | str:
    """The stored form of a rung, which may have failed."""
    if rung["ns"] is None:
        return str(rung["reason"])
    low_ns, high_ns = rung["ci95_ns"]
    return {"ns": rung["ns"], "low_ns": low_ns, "high_ns": high_ns, "processes": 0}


def rung_row(name: str) -> TimeRow:
    """A row of the ladder; a rung may have no published figure."""
    figure = next((each for each in figures("add1") if each.rung == name), None)
    source, published_ns = (figure.source, figure.ns) if figure else ("", None)
    return TimeRow(RUNGS[name].title, source, published_ns, f"ladder/{name}")


PARTS = (
    Part("add1", profiled(*ADD1_CALLS), ADD1_TIMES, ADD1_RATIOS),
    Part("rungs", (Unit("ladder", measure_ladder),), [*map(rung_row, RUNGS)]),
)
