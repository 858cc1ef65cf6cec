"""Where published figures come from, and those that scenarios carry; the others stand beside their tables."""

from __future__ import annotations

from collections.abc import Mapping

from overhead_lens.scenario import Published
from overhead_lens.target import parse_target
from overhead_lens.worker.load import load_scenario

FORUM = 'forum question "Batching Question", discuss.pytorch.org topic 102632'
NOTEBOOK = "ZOSIA 2026 talk notebook; machine not stated"


def published_of(target: str, *, compile: bool, params: Mapping[str, str] | None = None) -> list[Published]:
    """The scenario's figures for a call; ``params`` are texts as on the command line."""
    named = parse_target(target)
    scenario = load_scenario(named)
    variant = scenario.variant(named.name)
    wanted = {name: value.lower() for name, value in (params or {}).items()}
    return [
        each
        for each in scenario.published
        if (each.variant, each.compile) == (variant, compile)
        and not each.rung.endswith("_inference_mode")  # a scenario of its own measures those
        and {name: str(value).lower() for name, value in each.params.items()} == wanted
    ]


def scenario_published(name: str) -> tuple[Published, ...]:
    """All of a scenario's figures."""
    return load_scenario(parse_target(name)).published
