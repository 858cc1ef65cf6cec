"""Gradients are dropped in place of being filled with zeros."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse


@contextmanager
def _dropping(objects: list[Any]) -> Iterator[None]:
    for each in objects:
        each.zero_grad = partial(_zero_grad, each, type(each).zero_grad)
    try:
        yield
    finally:
        for each in objects:
            del each.zero_grad


def _zero_grad(each: Any, own: Any, set_to_none: bool = True) -> None:  # noqa: ARG001
    own(each, set_to_none=True)


def _apply(call: Call) -> Call:
    import torch

    objects = call.reached(torch.optim.Optimizer, torch.nn.Module)
    codes = [function.__code__ for function in call.reached(FunctionType)]
    fills = ["zero_grad" in code.co_names and any(value is False for value in code.co_consts) for code in codes]
    refuse(not any(fills), "the function does not call zero_grad(set_to_none=False)")
    refuse(not objects, "the function reaches no optimizer and no module")
    return call.inside(partial(_dropping, objects))


REMEDY = Remedy(
    name="set_to_none",
    summary="gradients are dropped, and the next backward pass writes in place of adding",
    how="optimizer.zero_grad(set_to_none=True)",
    safety="changes_semantics",
    shrinks=("kernel", "dispatcher", "python"),
    source="https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
    apply=_apply,
)
