"""Channels last: the layout that convolutions prefer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse


@contextmanager
def _converted(modules: list[Any], optimizers: list[Any]) -> Iterator[None]:
    """Modules and states of optimizers whose images are channels last; in the end these are stored as before."""
    import torch

    with torch.inference_mode(False):
        before = {id(each): (each, each.data) for each in _images(modules, optimizers)}
        for image, data in before.values():
            image.data = data.contiguous(memory_format=torch.channels_last)
    try:
        yield
    finally:
        with torch.inference_mode(False):
            for image in _images(modules, optimizers):
                known = id(image) in before
                image.data = before[id(image)][1].copy_(image.data) if known else image.data.contiguous()


def _images(modules: list[Any], optimizers: list[Any]) -> list[Any]:
    """Tensors of four dimensions, none expanded: parameters, buffers, gradients, states of optimizers."""
    import torch

    weights = [each for module in modules for each in chain(module.parameters(), module.buffers())]
    states = [value for optimizer in optimizers for state in optimizer.state.values() for value in state.values()]
    candidates = [*weights, *(each.grad for each in weights if each.is_leaf), *states]
    return [
        each for each in candidates if isinstance(each, torch.Tensor) and each.dim() == 4 and 0 not in each.stride()
    ]


def _apply(call: Call) -> Call:
    import torch

    def changed(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() == 4:
            return value.contiguous(memory_format=torch.channels_last)
        return value

    has_images = any(isinstance(value, torch.Tensor) and value.dim() == 4 for value in call.args)
    refuse(not has_images, "no argument is a tensor of four dimensions")
    modules, optimizers = call.reached(torch.nn.Module), call.reached(torch.optim.Optimizer)
    return replace(call, args=tuple(map(changed, call.args))).inside(partial(_converted, modules, optimizers))


REMEDY = Remedy(
    name="channels_last",
    summary="images and weights are stored with the channels innermost",
    how="model = model.to(memory_format=torch.channels_last); x = x.contiguous(memory_format=torch.channels_last)",
    shrinks=("kernel", "wait"),
    source="https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
    apply=_apply,
)
