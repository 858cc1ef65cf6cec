"""Training steps: processes that prepare batches ahead, optimizers that update all parameters at once, dropped gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

from overhead_lens.remedies.remedy import Call, Remedy, refuse, updated
from overhead_lens.remedies.threads import cores

_PREPARING = ("wait", "python", "kernel", "dispatcher", "allocation")
_SOURCE = "https://docs.pytorch.org/docs/stable/data.html"


def _with(call: Call, loaders: list[Any], **changes: Any) -> Call:
    """The call with other settings of its loaders, and without the processes that they keep for the next epoch."""
    # DataLoader refuses to have some of these changed by assignment.
    return call.inside(partial(updated, [vars(loader) for loader in loaders], {**changes, "_iterator": None}))


def _workers(call: Call) -> Call:
    loaders, count = _without_timeout(call), len(cores())
    refuse(all(loader.num_workers >= count for loader in loaders), f"there are {loaders[0].num_workers} workers")
    return _with(call, loaders, num_workers=count, prefetch_factor=2, persistent_workers=True)


def _in_the_loop(call: Call) -> Call:
    loaders = _without_timeout(call)
    refuse(not any(loader.num_workers for loader in loaders), "there are no workers")
    return _with(call, loaders, num_workers=0, prefetch_factor=None, persistent_workers=False)


def _pinned(call: Call) -> Call:
    loaders = _loaders(call)
    refuse(call.device == "cpu", "pinned memory serves copies to a device")
    refuse(all(loader.pin_memory for loader in loaders), "it is on")
    return _with(call, loaders, pin_memory=True)


def _loaders(call: Call) -> list[Any]:
    from torch.utils.data import DataLoader

    loaders = call.reached(DataLoader)
    refuse(not loaders, "the function reaches no DataLoader by its arguments, closure or globals")
    return loaders


def _without_timeout(call: Call) -> list[Any]:
    loaders = _loaders(call)
    # Without processes a DataLoader refuses one, and for more it may be too short.
    refuse(any(loader.timeout for loader in loaders), "the loader has a timeout of its own")
    return loaders


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


def _updating(call: Call, name: str) -> Call:
    from torch.optim import Optimizer

    optimizers = call.reached(Optimizer)
    refuse(not optimizers, "the function reaches no optimizer by its arguments, closure or globals")
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    refuse(not all(name in group for group in groups), f"{type(optimizers[0]).__name__} has no {name}")
    refuse(all(group[name] for group in groups), f"it is {name}")
    settings = {"foreach": name == "foreach", "fused": name == "fused"}
    known = {key: value for key, value in settings.items() if all(key in group for group in groups)}
    return call.inside(partial(_set, optimizers, known))


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


def _set_to_none(call: Call) -> Call:
    import torch

    objects = call.reached(torch.optim.Optimizer, torch.nn.Module)
    codes = [function.__code__ for function in call.reached(FunctionType)]
    fills = ["zero_grad" in code.co_names and any(value is False for value in code.co_consts) for code in codes]
    refuse(not any(fills), "the function does not call zero_grad(set_to_none=False)")
    refuse(not objects, "the function reaches no optimizer and no module")
    return call.inside(partial(_dropping, objects))


REMEDIES = (
    Remedy(
        name="loader_workers",
        summary="a process for each available core prepares batches, and stays for the next epoch",
        how="DataLoader(dataset, num_workers=len(os.sched_getaffinity(0)), persistent_workers=True)",
        shrinks=_PREPARING,
        source=_SOURCE,
        apply=_workers,
        group="workers",
    ),
    Remedy(
        name="no_loader_workers",
        summary="batches are prepared in the loop itself, so that none has to be received from a process",
        how="DataLoader(dataset, num_workers=0)",
        shrinks=_PREPARING,
        source=_SOURCE,
        apply=_in_the_loop,
        group="workers",
    ),
    Remedy(
        name="pin_memory",
        summary="batches lie in pinned memory, from which a device copies faster",
        how="DataLoader(dataset, pin_memory=True)",
        shrinks=("wait", "launch"),
        source=_SOURCE,
        apply=_pinned,
    ),
    *(
        Remedy(
            name=f"{name}_optimizer",
            summary=summary,
            how=f"torch.optim.AdamW(parameters, {name}=True)",
            shrinks=("python", "dispatcher", "kernel", "launch"),
            source="https://docs.pytorch.org/docs/stable/optim.html#per-parameter-options",
            apply=partial(_updating, name=name),
            group="optimizer",
        )
        for name, summary in (
            ("foreach", "the optimizer calls one operator for all parameters"),
            ("fused", "the optimizer calls one kernel for all parameters"),
        )
    ),
    Remedy(
        name="set_to_none",
        summary="gradients are dropped, and the next backward pass writes in place of adding",
        how="optimizer.zero_grad(set_to_none=True)",
        safety="changes_semantics",
        shrinks=("kernel", "dispatcher", "python"),
        source="https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
        apply=_set_to_none,
    ),
)
