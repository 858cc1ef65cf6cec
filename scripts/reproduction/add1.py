"""``add1``: eager and compiled, and the rungs of its ladder."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.reproduction.measuring import profiled, run_tool
from scripts.reproduction.outcomes import Call, Measured, Outcome, Outcomes, Part, RatioRow, TimeRow, Unit, outcome_of
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


def add1_times(outcomes: Outcomes) -> list[TimeRow]:
    """Eager and compiled, under inference mode and with gradients."""
    return [
        TimeRow(figure.label, figure.source, figure.ns, outcome_of(outcomes, name))
        for name, figures in _figures().items()
        for figure in figures
    ]


def add1_ratios(outcomes: Outcomes) -> list[RatioRow]:
    """Eager over compiled, where one source has both."""
    figures, rows = _figures(), []
    for eager, compiled in PAIRS:
        sides = outcome_of(outcomes, compiled), outcome_of(outcomes, eager)
        for old, new in itertools.product(figures[eager], figures[compiled]):
            if old.source == new.source:
                rows.append(RatioRow(f"eager over {new.label}", new.source, new.ns / old.ns, *sides))
    return rows


def _figures() -> dict[str, list[Published]]:
    """Published figures by call; of the post that reports many steps the first and the last."""
    figures = {}
    for call in ADD1_CALLS:
        of_call = published_of(Path(call.target).stem, compile=call.compile, params=call.params)
        steps = call.name == "compiled"
        figures[call.name] = [
            each for each in of_call if not steps or "issue" in each.source or each.label in ENDS_OF_THE_POST
        ]
    return figures


def measure_ladder(_options: argparse.Namespace) -> dict[str, Any]:
    """A unit: the rungs of ``overhead-lens ladder add1``, an outcome and the title of each."""
    done = run_tool(["ladder", "add1", "--json"])
    return {"ladder": done} if isinstance(done, str) else {"rungs": done["rungs"]}


def rung_times(outcomes: Mapping[str, Any]) -> list[TimeRow]:
    """The ladder's rungs, or the published figures alone where it could not be climbed."""
    rungs = outcomes.get("ladder/rungs")
    if isinstance(rungs, list):
        return [rung_row(rung) for rung in rungs]
    reason = outcome_of(outcomes, "ladder")
    post = [each for each in published_of("add1", compile=True) if "issue" not in each.source]
    return [TimeRow(each.label, each.source, each.ns, reason) for each in post]


def rung_row(rung: Mapping[str, Any]) -> TimeRow:
    """A row of the ladder; a rung may have no published figure, and may have failed."""
    outcome: Outcome = rung["reason"] or "no reason was given"
    if rung["ns"] is not None:
        low_ns, high_ns = rung["ci95_ns"] or (rung["ns"], rung["ns"])
        outcome = Measured(rung["ns"], low_ns, high_ns, 0)
    figure = next((each for each in figures("add1") if each.rung == rung["name"]), None)
    if figure is None:
        return TimeRow(rung["title"], "", None, outcome)
    return TimeRow(rung["title"], figure.source, figure.ns, outcome)


PARTS = (
    Part("add1", profiled(*ADD1_CALLS), add1_times, add1_ratios),
    Part("rungs", (Unit("ladder", measure_ladder),), rung_times),
)
