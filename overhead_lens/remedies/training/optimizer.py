"""Optimizers that update all parameters at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse, updated


@contextmanager
def _set(optimizers: list[Any], changes: Mapping[str, bool]) -> Iterator[None]:
    """Optimizers with other settings, which get their own back in the end."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    try:
        with updated(groups, changes):
            _move_steps(optimizers)
            yield
    finally:
        _move_steps(optimizers)


def _move_steps(optimizers: list[Any]) -> None:
    """Move the counters of steps to where the settings need them, as ``Optimizer.load_state_dict`` does."""
    import torch

    for optimizer in optimizers:
        for group in optimizer.param_groups:
            counting = [
                each for each in group["params"] if "fused" in group and "step" in optimizer.state.get(each, {})
            ]
            for parameter in counting:
                state = optimizer.state[parameter]
                if group["fused"]:
                    state["step"] = state["step"].to(parameter.device, torch.float32)
                elif not group.get("capturable"):
                    state["step"] = state["step"].cpu()


def _apply(call: Call, name: str) -> Call:
    from torch.optim import Optimizer

    optimizers = call.reached(Optimizer)
    refuse(not optimizers, "the function reaches no optimizer by its arguments, closure or globals")
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    refuse(not all(name in group for group in groups), f"{type(optimizers[0]).__name__} has no {name}")
    refuse(all(group[name] for group in groups), f"it is {name}")
    settings = {"foreach": name == "foreach", "fused": name == "fused"}
    known = {key: value for key, value in settings.items() if all(key in group for group in groups)}
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
