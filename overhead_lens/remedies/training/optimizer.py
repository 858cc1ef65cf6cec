"""Optimizers that update all parameters at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


@contextmanager
def _set(optimizers: list[Any], wanted: dict[str, bool]) -> Iterator[None]:
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    before = [{name: group.get(name) for name in wanted} for group in groups]
    for group in groups:
        group.update(wanted)
    try:
        yield
    finally:
        for group, values in zip(groups, before, strict=True):
            group.update(values)


def _apply(call: Call, name: str) -> Call:
    from torch.optim import Optimizer

    optimizers = call.reached(Optimizer)
    if not optimizers:
        raise NotApplicableError("the function reaches no optimizer by its arguments, closure or globals")
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    if not all(name in group for group in groups):
        raise NotApplicableError(f"{type(optimizers[0]).__name__} has no {name}")
    if all(group[name] for group in groups):
        raise NotApplicableError(f"it is {name}")
    wanted = {"foreach": name == "foreach", "fused": name == "fused"}
    known = {key: value for key, value in wanted.items() if all(key in group for group in groups)}
    return call.inside(partial(_set, optimizers, known))


REMEDIES = tuple(
    Remedy(
        name=f"{name}_optimizer",
        summary=summary,
        how=f"torch.optim.AdamW(parameters, {name}=True)",
        shrinks=("python", "dispatcher", "kernel", "launch"),
        source="https://docs.pytorch.org/docs/stable/optim.html#per-parameter-options",
        apply=partial(_apply, name=name),
        group="optimizer",
    )
    for name, summary in (
        ("foreach", "the optimizer calls one operator for all parameters"),
        ("fused", "the optimizer calls one kernel for all parameters"),
    )
)
