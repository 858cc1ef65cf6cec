"""Without torch.compile: a small call can be faster so."""

from __future__ import annotations

from dataclasses import replace

from overhead_lens.remedies.remedy import Call, Remedy


def _apply(call: Call) -> Call:
    call.check_compiled()
    return replace(call, compile_options=None)


REMEDY = Remedy(
    name="eager",
    summary="the call is not compiled",
    how="without torch.compile",
    shrinks=("guard", "compile", "python", "kernel"),
    source="https://docs.pytorch.org/docs/stable/torch.compiler_faq.html",
    apply=_apply,
    group="compile",
)
