"""``linear_loop`` and ``elementwise_sqrt``: one call against one for each row."""

from __future__ import annotations

from scripts.reproduction.measuring import profiled
from scripts.reproduction.outcomes import Call, Outcomes, Part, RatioRow, TimeRow, outcome_of
from scripts.reproduction.published import FORUM

# Published ratios; published times stand in the scenarios.
LINEAR_SPEED_UP = 77.0
GRAD = {"requires_grad": "true"}
LINEAR_CALLS = (
    Call("grad-loop", "linear_loop:loop", params=GRAD),
    Call("grad-batched", "linear_loop:batched", params=GRAD),
    Call("loop", "linear_loop:loop"),
    Call("batched", "linear_loop:batched"),
)
SQRT_CALLS = (Call("loop", "elementwise_sqrt:loop"), Call("whole", "elementwise_sqrt:whole"))


def linear_times(outcomes: Outcomes) -> list[TimeRow]:
    """Batched and one by one; only the ratio is published."""
    return _times(outcomes, LINEAR_CALLS)


def linear_ratios(outcomes: Outcomes) -> list[RatioRow]:
    """Batched against one by one, as asked (the layer's weight requires a gradient) and without gradients."""
    labels = {"batched over loop, weight requires_grad": "grad-", "batched over loop, no gradient": ""}
    return [
        RatioRow(
            label,
            FORUM,
            LINEAR_SPEED_UP,
            *(outcome_of(outcomes, f"{prefix}{name}/{prefix}{name}") for name in ("loop", "batched")),
        )
        for label, prefix in labels.items()
    ]


def sqrt_times(outcomes: Outcomes) -> list[TimeRow]:
    """Row by row and in one call; nobody has published a figure."""
    return _times(outcomes, SQRT_CALLS)


def sqrt_ratios(outcomes: Outcomes) -> list[RatioRow]:
    """Row by row against one call."""
    return [RatioRow("whole over loop", FORUM, None, *(row.here for row in sqrt_times(outcomes)))]


def _times(outcomes: Outcomes, calls: tuple[Call, ...]) -> list[TimeRow]:
    return [TimeRow(call.name, FORUM, None, outcome_of(outcomes, f"{call.name}/{call.name}")) for call in calls]


PARTS = (
    Part("linear_loop", profiled(*LINEAR_CALLS), linear_times, linear_ratios),
    Part("elementwise_sqrt", profiled(*SQRT_CALLS), sqrt_times, sqrt_ratios),
)
