"""Optimizers that update all parameters at once."""

from __future__ import annotations

from functools import partial

from overhead_lens.remedies.remedy import Call, Remedy, refuse, updated


def _apply(call: Call, name: str) -> Call:
    from torch.optim import Optimizer

    optimizers = call.reached(Optimizer)
    refuse(not optimizers, "the function reaches no optimizer by its arguments, closure or globals")
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    refuse(not all(name in group for group in groups), f"{type(optimizers[0]).__name__} has no {name}")
    refuse(all(group[name] for group in groups), f"it is {name}")
    wanted = {"foreach": name == "foreach", "fused": name == "fused"}
    known = {key: value for key, value in wanted.items() if all(key in group for group in groups)}
    return call.inside(partial(updated, groups, known))


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
