"""``gelu`` and ``split_stack``: what fusing operators saves."""

from __future__ import annotations

from scripts.reproduction.measuring import profiled
from scripts.reproduction.outcomes import Call, Outcomes, Part, outcome_of
from scripts.reproduction.published import NOTEBOOK, published_of, scenario_published
from scripts.reproduction.wording import (
    RATIO_HEADER,
    TIME_HEADER,
    budget_sentence,
    difference_sentence,
    here,
    kernel_sentence,
    paragraph,
    ratio_row,
    table,
    time_row,
)

PUZZLER = "GPUPuzzlers, fusion; A100 40 GB"
SPLIT_SPEED_UPS = {"combined": 8.4, "split_stack-compiled": 2.5, "combined-compiled": 10.3}


def render_gelu(outcomes: Outcomes) -> list[str]:
    """Eager against compiled."""
    eager, compiled = (outcome_of(outcomes, f"{name}/{name}") for name in ("eager", "compiled"))
    figures = [published_of("gelu", compile=compiled_too)[0] for compiled_too in (False, True)]
    rows = [
        time_row(each.label, NOTEBOOK, each.ns, found) for each, found in zip(figures, (eager, compiled), strict=True)
    ]
    rows.append(ratio_row("compiled over eager", NOTEBOOK, figures[0].ns / figures[1].ns, eager, compiled))
    sentences = [difference_sentence("eager", eager, "compiled", compiled)]
    for label, outcome in (("eager", eager), ("compiled", compiled)):
        if not isinstance(outcome, str) and outcome.host_ns:
            faults_ns = outcome.host_ns.get("allocation/page_fault", 0.0)
            sentences.append([f"First-touch page faults are {faults_ns / outcome.ns:.0%} of {label}."])
    return [*table(TIME_HEADER, rows), *paragraph(*sentences, kernel_sentence("eager", eager, "compiled", compiled))]


SPLIT_CALLS = (
    Call("split_stack", "split_stack:split_stack"),
    Call("combined", "split_stack:combined"),
    Call("split_stack-compiled", "split_stack:split_stack", compile=True),
    Call("combined-compiled", "split_stack:combined", compile=True),
)


def render_split(outcomes: Outcomes) -> list[str]:
    """The four variants' times here, and their speed-ups."""
    found = {call.name: outcome_of(outcomes, f"{call.name}/{call.name}") for call in SPLIT_CALLS}
    published = {each.variant: each.ns for each in scenario_published("split_stack")}
    times = [
        time_row(name, PUZZLER, published[name], outcome)
        if name in published
        else [name, PUZZLER, "", here(outcome), ""]
        for name, outcome in found.items()
    ]
    rows = [
        ratio_row(f"{name} over split_stack", PUZZLER, speed_up, found["split_stack"], found[name])
        for name, speed_up in SPLIT_SPEED_UPS.items()
    ]
    sentences = [budget_sentence(f"`{name}`", outcome) for name, outcome in found.items()]
    base = found["split_stack"]
    for name in SPLIT_SPEED_UPS:
        sentences.append(kernel_sentence("`split_stack`", base, f"`{name}`", found[name]))
    return [
        "Published on a GPU, measured here on the CPU: there the kernels leave the device idle between launches, here the host",
        "is what computes. What is left of a speed-up here is not a GPU's idle time.",
        "",
        *table(TIME_HEADER, times),
        *table(RATIO_HEADER, rows),
        *paragraph(*sentences),
    ]


PARTS = (
    Part(
        "gelu",
        "`gelu`: fusion",
        profiled(Call("eager", "gelu"), Call("compiled", "gelu", compile=True)),
        render_gelu,
    ),
    Part("split_stack", "`split_stack`: four variants", profiled(*SPLIT_CALLS), render_split),
)
