"""What changes how eager operators run: layout, denormal numbers, the garbage collector, autograd."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse

_RECORDING = ("dispatcher", "allocation", "python", "guard")


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


def _channels_last(call: Call) -> Call:
    import torch

    def changed(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() == 4:
            return value.contiguous(memory_format=torch.channels_last)
        return value

    has_images = any(isinstance(value, torch.Tensor) and value.dim() == 4 for value in call.args)
    refuse(not has_images, "no argument is a tensor of four dimensions")
    modules, optimizers = call.reached(torch.nn.Module), call.reached(torch.optim.Optimizer)
    return replace(call, args=tuple(map(changed, call.args))).inside(partial(_converted, modules, optimizers))


@contextmanager
def _flushing() -> Iterator[None]:
    import torch

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _flush_denormal(call: Call) -> Call:
    import torch

    refuse(call.device != "cpu", "the call runs on a device")
    flushes = (torch.tensor(5e-324, dtype=torch.float64) * 1).item() == 0
    refuse(flushes, "it is on")
    refuse(not torch.set_flush_denormal(False), "this processor cannot flush denormal numbers")
    return call.inside(_flushing)


@contextmanager
def _rarely() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(100 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _collecting_rarely(call: Call) -> Call:
    refuse(not gc.isenabled(), "the garbage collector is off")
    return call.inside(_rarely)


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
        name="channels_last",
        summary="images and weights are stored with the channels innermost",
        how="model = model.to(memory_format=torch.channels_last); x = x.contiguous(memory_format=torch.channels_last)",
        shrinks=("kernel", "wait"),
        source="https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
        apply=_channels_last,
    ),
    Remedy(
        name="flush_denormal",
        summary="the processor treats denormal numbers as zero, in the calling thread",
        how="torch.set_flush_denormal(True)",
        safety="changes_semantics",
        shrinks=("kernel",),
        source="https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html",
        apply=_flush_denormal,
    ),
    Remedy(
        name="gc_rarely",
        summary="the garbage collector runs a hundred times less often",
        how="gc.freeze(); gc.set_threshold(100 * gc.get_threshold()[0])",
        shrinks=("python",),
        source="https://docs.python.org/3/library/gc.html#gc.set_threshold",
        apply=_collecting_rarely,
        group="garbage",
        own_process=True,
    ),
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
