"""``add1``: eager and compiled, and the rungs of its ladder."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overhead_lens.scenario import Published
from scripts.reproduction.measuring import profiled, run_tool
from scripts.reproduction.outcomes import Call, Measured, Outcome, Outcomes, Part, Unit, outcome_of
from scripts.reproduction.published import published_of
from scripts.reproduction.wording import (
    RATIO_HEADER,
    TIME_HEADER,
    difference_sentence,
    here,
    paragraph,
    ratio_row,
    table,
    time_row,
)

INFERENCE = str(Path(__file__).parents[1] / "add1_inference.py")
POST = "Micro-optimizations for the most micro of benchmarks; i9-11900K, 1 element"
ENDS_OF_THE_POST = ("compiled, before the changes", "compiled, after the changes")
ADD1_CALLS = (
    Call("eager", "add1"),
    Call("compiled", "add1", compile=True),
    Call("inference-eager", INFERENCE),
    Call("inference-compiled", INFERENCE, compile=True),
    Call("grad-eager", "add1", params={"requires_grad": "true"}),
    Call("grad-compiled", "add1", compile=True, params={"requires_grad": "true"}),
)


def render_add1(outcomes: Outcomes) -> list[str]:
    """Eager against compiled, under inference mode and with gradients."""
    figures: dict[str, list[Published]] = {}
    for call in ADD1_CALLS:
        of_call = published_of(call.target, compile=call.compile, params=call.params)
        steps = call.name == "compiled"
        figures[call.name] = [
            each for each in of_call if not steps or "issue" in each.source or each.label in ENDS_OF_THE_POST
        ]
    found = {call.name: outcome_of(outcomes, f"{call.name}/{call.name}") for call in ADD1_CALLS}
    pairs = [("eager", "compiled"), ("inference-eager", "inference-compiled"), ("grad-eager", "grad-compiled")]
    sentences = [difference_sentence(base, found[base], new, found[new]) for base, new in pairs]
    moved = difference_sentence("compiled", found["compiled"], "grad-compiled", found["grad-compiled"])
    times = [time_row(each.label, each.source, each.ns, found[name]) for name, of in figures.items() for each in of]
    ratios = [
        ratio_row(f"eager over {new.label}", new.source, new.ns / old.ns, found[after], found[before])
        for before, after in pairs
        for old, new in itertools.product(figures[before], figures[after])
        if old.source == new.source
    ]
    return [*table(TIME_HEADER, times), *table(RATIO_HEADER, ratios), *paragraph(*sentences, moved)]


def measure_ladder(_options: argparse.Namespace) -> dict[str, Any]:
    """A unit: the rungs of ``overhead-lens ladder add1``, an outcome and the title and published figure of each."""
    done = run_tool(["ladder", "add1", "--json"])
    return {"ladder": done} if isinstance(done, str) else {"rungs": done["rungs"]}


def render_rungs(outcomes: Outcomes) -> list[str]:
    """The ladder's rungs, or the published figures alone where it could not be climbed."""
    rungs = outcomes.get("ladder/rungs")
    if isinstance(rungs, list):
        return table(TIME_HEADER, [rung_row(rung) for rung in rungs])
    reason = outcome_of(outcomes, "ladder/ladder")
    post = [each for each in published_of("add1", compile=True) if "issue" not in each.source]
    return table(TIME_HEADER, [time_row(each.label, each.source, each.ns, reason) for each in post])


def rung_row(rung: Mapping[str, Any]) -> list[str]:
    """A row of the ladder; a rung may have no published figure, and may have failed."""
    outcome: Outcome = rung["reason"] or "no reason was given"
    if rung["ns"] is not None:
        low_ns, high_ns = rung["ci95_ns"] or (rung["ns"], rung["ns"])
        outcome = Measured(rung["ns"], low_ns, high_ns, 0)
    if rung["published_us"] is None:
        return [rung["title"], "", "", here(outcome), ""]
    return time_row(rung["title"], POST, 1000 * rung["published_us"], outcome)


PARTS = (
    Part("add1", "`add1`: eager and compiled", profiled(*ADD1_CALLS), render_add1),
    Part("rungs", "`add1`: the rungs", (Unit("ladder", measure_ladder),), render_rungs),
)
