"""No autograd."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


def _apply(call: Call) -> Call:
    import torch

    if not torch.is_grad_enabled():
        raise NotApplicableError("gradients are off")
    return call.inside(torch.no_grad)


REMEDY = Remedy(
    name="no_grad",
    summary="autograd records nothing",
    how="with torch.no_grad(): ...",
    shrinks=("dispatcher", "allocation", "python", "guard"),
    source="https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html",
    apply=_apply,
    group="autograd",
)
