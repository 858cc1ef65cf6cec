"""Channels last: the layout that convolutions prefer."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse


def _apply(call: Call) -> Call:
    import torch

    def changed(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() == 4:
            return value.contiguous(memory_format=torch.channels_last)
        if isinstance(value, torch.nn.Module):
            return copy.deepcopy(value).to(memory_format=torch.channels_last)
        return value

    has_images = any(isinstance(value, torch.Tensor) and value.dim() == 4 for value in call.args)
    refuse(not has_images, "no argument is a tensor of four dimensions")
    return replace(call, function=changed(call.function), args=tuple(map(changed, call.args)))


REMEDY = Remedy(
    name="channels_last",
    summary="images and weights are stored with the channels innermost",
    how="model = model.to(memory_format=torch.channels_last); x = x.contiguous(memory_format=torch.channels_last)",
    shrinks=("kernel", "wait"),
    source="https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
    apply=_apply,
)
