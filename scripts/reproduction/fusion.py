"""``gelu`` and ``split_stack``: what fusing operators saves."""

from __future__ import annotations

from scripts.reproduction.measuring import profiled
from scripts.reproduction.outcomes import Call, Outcomes, Part, RatioRow, TimeRow, outcome_of
from scripts.reproduction.published import NOTEBOOK, figures, published_of

PUZZLER = "GPUPuzzlers, fusion; A100 40 GB"
ON_A_GPU = (
    "split_stack was published on a GPU, where kernels leave the device idle between launches, and is measured here on the CPU: "
    "the rest of its speed-ups is not idle time of a device."
)
SPLIT_SPEED_UPS = {"combined": 8.4, "split_stack-compiled": 2.5, "combined-compiled": 10.3}
SPLIT_CALLS = (
    Call("split_stack", "split_stack:split_stack"),
    Call("combined", "split_stack:combined"),
    Call("split_stack-compiled", "split_stack:split_stack", compile=True),
    Call("combined-compiled", "split_stack:combined", compile=True),
)
GELU_CALLS = (Call("eager", "gelu"), Call("compiled", "gelu", compile=True))


def gelu_times(outcomes: Outcomes) -> list[TimeRow]:
    """Eager and compiled."""
    return [
        TimeRow(figure.label, NOTEBOOK, figure.ns, outcome_of(outcomes, call.name))
        for call in GELU_CALLS
        for figure in published_of("gelu", compile=call.compile)[:1]
    ]


def gelu_ratios(outcomes: Outcomes) -> list[RatioRow]:
    """Compiled over eager."""
    eager, compiled = gelu_times(outcomes)
    assert eager.published_ns is not None
    assert compiled.published_ns is not None
    published = eager.published_ns / compiled.published_ns
    return [RatioRow("compiled over eager", NOTEBOOK, published, eager.here, compiled.here)]


def split_times(outcomes: Outcomes) -> list[TimeRow]:
    """The four variants."""
    published = {each.variant: each.ns for each in figures("split_stack")}
    return [
        TimeRow(call.name, PUZZLER, published.get(call.name), outcome_of(outcomes, call.name)) for call in SPLIT_CALLS
    ]


def split_ratios(outcomes: Outcomes) -> list[RatioRow]:
    """Each variant over the first."""
    outcome_by_name = {row.label: row.here for row in split_times(outcomes)}
    return [
        RatioRow(f"{name} over split_stack", PUZZLER, speed_up, outcome_by_name["split_stack"], outcome_by_name[name])
        for name, speed_up in SPLIT_SPEED_UPS.items()
    ]


PARTS = (
    Part("gelu", profiled(*GELU_CALLS), gelu_times, gelu_ratios),
    Part("split_stack", profiled(*SPLIT_CALLS), split_times, split_ratios),
)
