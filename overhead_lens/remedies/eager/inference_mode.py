"""No autograd, and no version counters either."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


def _apply(call: Call) -> Call:
    import torch

    if torch.is_inference_mode_enabled():
        raise NotApplicableError("inference mode is on")
    return call.inside(torch.inference_mode)


REMEDY = Remedy(
    name="inference_mode",
    summary="autograd records nothing, and tensors have no version counters",
    how="with torch.inference_mode(): ...",
    shrinks=("dispatcher", "allocation", "python", "guard"),
    source="https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode",
    apply=_apply,
    group="autograd",
)
