"""No autograd, with or without version counters."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, Remedy, refuse

_RECORDING = ("dispatcher", "allocation", "python", "guard")


def _inference_mode(call: Call) -> Call:
    import torch

    refuse(torch.is_inference_mode_enabled(), "inference mode is on")
    return call.inside(torch.inference_mode)


def _no_grad(call: Call) -> Call:
    import torch

    refuse(not torch.is_grad_enabled(), "gradients are off")
    return call.inside(torch.no_grad)


REMEDIES = (
    Remedy(
        name="inference_mode",
        summary="autograd records nothing, and tensors have no version counters",
        how="with torch.inference_mode(): ...",
        shrinks=_RECORDING,
        source="https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode",
        apply=_inference_mode,
        group="autograd",
    ),
    Remedy(
        name="no_grad",
        summary="autograd records nothing",
        how="with torch.no_grad(): ...",
        shrinks=_RECORDING,
        source="https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html",
        apply=_no_grad,
        group="autograd",
    ),
)
