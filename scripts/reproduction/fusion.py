"""``gelu`` and ``split_stack``: what fusing operators saves."""

from __future__ import annotations

from scripts.reproduction.measuring import profiled
from scripts.reproduction.outcomes import Call, Part, RatioRow, TimeRow
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
GELU_FIGURES = EAGER, COMPILED = [published_of("gelu", compile=call.compile)[0] for call in GELU_CALLS]
GELU_TIMES = [
    TimeRow(figure.label, NOTEBOOK, figure.ns, call.name) for call, figure in zip(GELU_CALLS, GELU_FIGURES, strict=True)
]
GELU_RATIO = RatioRow("compiled over eager", NOTEBOOK, EAGER.ns / COMPILED.ns, "eager", "compiled")
SPLIT_NS = {each.variant: each.ns for each in figures("split_stack")}
SPLIT_TIMES = [TimeRow(call.name, PUZZLER, SPLIT_NS.get(call.name), call.name) for call in SPLIT_CALLS]
SPLIT_RATIOS = [
    RatioRow(f"{name} over split_stack", PUZZLER, speed_up, "split_stack", name)
    for name, speed_up in SPLIT_SPEED_UPS.items()
]

PARTS = (
    Part("gelu", profiled(*GELU_CALLS), GELU_TIMES, [GELU_RATIO]),
    Part("split_stack", profiled(*SPLIT_CALLS), SPLIT_TIMES, SPLIT_RATIOS),
)
