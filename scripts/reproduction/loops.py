"""``linear_loop`` and ``elementwise_sqrt``: one call against one for each row."""

from __future__ import annotations

from overhead_lens.scenario import load, parse_target
from scripts.reproduction.measuring import profiled
from scripts.reproduction.outcomes import Call, Outcomes, Part, outcome_of, ratio
from scripts.reproduction.published import FORUM
from scripts.reproduction.wording import (
    RATIO_HEADER,
    TIME_HEADER,
    budget_sentence,
    here,
    kernel_rate_sentence,
    kernel_sentence,
    paragraph,
    ratio_row,
    table,
)

# Published ratios; published times stand in the scenarios.
LINEAR_SPEED_UP = 77.0


def render_linear(outcomes: Outcomes) -> list[str]:
    """Batched against one by one, as asked (the layer's weight requires a gradient) and without gradients."""
    scenario = load(parse_target("linear_loop").path)
    assert scenario.work is not None
    flops = scenario.work(scenario.params()).flops
    rows, sentences = [], []
    for label, prefix in (("batched over loop, weight requires_grad", "grad-"), ("batched over loop, no gradient", "")):
        slow, fast = (outcome_of(outcomes, f"{prefix}{name}/{prefix}{name}") for name in ("loop", "batched"))
        rows.append(ratio_row(label, FORUM, LINEAR_SPEED_UP, slow, fast))
        sentences += [budget_sentence(f"`{prefix}loop`", slow), budget_sentence(f"`{prefix}batched`", fast)]
        sentences.append(kernel_sentence(f"`{prefix}loop`", slow, f"`{prefix}batched`", fast))
        sentences.append(kernel_rate_sentence(flops, {f"`{prefix}loop`": slow, f"`{prefix}batched`": fast}))
    return [*table(RATIO_HEADER, rows), *paragraph(*sentences)]


def render_sqrt(outcomes: Outcomes) -> list[str]:
    """Row by row against one call; nobody has published a figure."""
    slow, fast = (outcome_of(outcomes, f"{name}/{name}") for name in ("loop", "whole"))
    rows = [[name, FORUM, "none", here(outcome), ""] for name, outcome in (("loop", slow), ("whole", fast))]
    if not isinstance(slow, str) and not isinstance(fast, str):
        rows.append(["whole over loop", FORUM, "none", str(ratio(slow, fast)), ""])
    sentences = [budget_sentence("`loop`", slow), budget_sentence("`whole`", fast)]
    return [*table(TIME_HEADER, rows), *paragraph(*sentences, kernel_sentence("`loop`", slow, "`whole`", fast))]


GRAD = {"requires_grad": "true"}


PARTS = (
    Part(
        "linear_loop",
        "`linear_loop`: batched over one by one",
        profiled(
            Call("grad-loop", "linear_loop:loop", params=GRAD),
            Call("grad-batched", "linear_loop:batched", params=GRAD),
            Call("loop", "linear_loop:loop"),
            Call("batched", "linear_loop:batched"),
        ),
        render_linear,
    ),
    Part(
        "elementwise_sqrt",
        "`elementwise_sqrt`: row by row, or whole",
        profiled(Call("loop", "elementwise_sqrt:loop"), Call("whole", "elementwise_sqrt:whole")),
        render_sqrt,
    ),
)
