"""Weights as constants."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


def _apply(call: Call) -> Call:
    import torch

    if not any(isinstance(each, torch.nn.Module) for each in call.objects()):
        raise NotApplicableError("the call has no module whose weights could be frozen")
    return call.with_options(freezing=True).inside(torch.no_grad)


REMEDY = Remedy(
    name="freezing",
    summary="weights become constants that are packed and folded when the call is compiled",
    how='with torch.no_grad(): torch.compile(f, options={"freezing": True})',
    safety="changes_semantics",
    shrinks=("kernel", "guard", "python"),
    source="https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html",
    apply=_apply,
)
