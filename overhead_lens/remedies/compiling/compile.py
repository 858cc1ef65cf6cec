"""torch.compile, as it comes."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


def _apply(call: Call) -> Call:
    if call.compile_options is not None:
        raise NotApplicableError("the call is compiled")
    return call.compiled()


REMEDY = Remedy(
    name="compile",
    summary="operators are fused and launched from generated code",
    how="f = torch.compile(f)",
    shrinks=("dispatcher", "allocation", "python", "kernel", "wait"),
    source="https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    apply=_apply,
    group="compile",
)
