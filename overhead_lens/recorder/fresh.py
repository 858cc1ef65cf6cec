"""Hands a call over to fresh processes: the function by its import, the arguments in a file."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from overhead_lens.errors import in_one_line
from overhead_lens.scenario import Arguments
from overhead_lens.target import Target, name_of
from overhead_lens.worker.load import rebuilt
from overhead_lens.worker.settings import Settings


class NotFreshError(Exception):
    """A fresh process could not make the same call; the message says why."""


def target_of(function: Callable[..., Any]) -> Target:
    """The target by which a fresh process finds a function.

    Raises:
        NotFreshError: It has no name that can be imported, or its name belongs to something else.
    """
    name, where = name_of(function), getattr(function, "__module__", None)
    module = sys.modules.get(where or "")
    if "<lambda>" in name:
        raise NotFreshError("a lambda has no name that can be imported")
    if "<locals>" in name:
        raise NotFreshError(f"{name} is defined inside a function: it cannot be imported")
    if module is None or not hasattr(function, "__qualname__"):
        raise NotFreshError(f"an object of type {type(function).__qualname__} cannot be imported by a name")
    if _named(module, name) is not function:
        raise NotFreshError(f"{where}.{name} is not this function, or a method bound to an object")
    if where != "__main__":
        return Target(f"{where}:{name}", module=module.__name__, name=name)
    file = getattr(module, "__file__", None)
    if file is None:
        raise NotFreshError(f"{name} is defined in an interactive session, which cannot be imported")
    return Target(f"{file}:{name}", file=Path(file).resolve(), name=name)


def pickled(arguments: Arguments) -> bytes:
    """The arguments of a call and then torch's settings, pickled.

    Raises:
        NotFreshError: They cannot be pickled, or would not be the same in another process.
    """
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump(arguments)
    except NotFreshError:
        raise
    except Exception as error:
        raise NotFreshError(f"its arguments cannot be pickled: {in_one_line(error)}") from None
    try:
        pickle.dump(Settings.of_this_process(), buffer)
    except Exception as error:
        raise NotFreshError(f"settings of torch cannot be pickled: {in_one_line(error)}") from None
    if b"__main__" in buffer.getvalue():
        raise NotFreshError("its arguments hold objects of types that __main__ defines")
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    """Keeps what torch's own pickling of tensors leaves out: gradients and pinned memory."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._computed: set[int] = set()

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.nn.Module):
            # What a module keeps of its last call it computes again in the next one, such as the weight of `weight_norm`.
            self._computed.update(map(id, vars(value).values()))
        if torch is None or not isinstance(value, torch.Tensor):
            return NotImplemented
        if not value.is_leaf:
            if id(value) in self._computed:
                return NotImplemented
            raise NotFreshError(
                "its arguments belong to an autograd graph of this process: compute them inside the function"
            )
        is_plain = type(value) is torch.Tensor and value.layout is torch.strided
        # Before CUDA is initialized no memory is pinned, and `is_pinned` might initialize it.
        is_pinned = is_plain and torch.cuda.is_initialized() and value.is_pinned()
        if value.grad is None and not is_pinned:
            return NotImplemented
        make, parts, *state = value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
        return rebuilt, (make, parts, _alone(value.grad), is_pinned), *state


def _alone(gradient: Any) -> Any:
    """A gradient with memory of its own: of a gradient that is a view, torch pickles the whole storage."""
    torch = sys.modules["torch"]
    if type(gradient) is not torch.Tensor or gradient.layout is not torch.strided or gradient.requires_grad:
        return gradient
    return gradient.clone() if gradient.untyped_storage().nbytes() > gradient.nbytes else gradient


def check_state() -> None:
    """Refuse modes of torch that a fresh process would not have.

    Raises:
        NotFreshError: There is one.
    """
    for mode in _modes():
        raise NotFreshError(f"{mode} here, which a fresh process would not know")


def _modes() -> Iterator[str]:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    from overhead_lens.worker.runtime import float32_products

    if float32_products() != "highest":
        yield "float32 matrix products are not of the highest precision"
    if torch.are_deterministic_algorithms_enabled():
        yield "deterministic algorithms are demanded"
    if torch.is_anomaly_enabled():
        yield "anomaly detection is on"
    if torch.is_inference_mode_enabled():
        yield "inference mode is on"
    if not torch.is_grad_enabled():
        yield "grad mode is off"
    if any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")):
        yield "autocast is on"
    if torch.get_default_dtype() is not torch.float32:
        yield f"the default dtype is {torch.get_default_dtype()}"
    # torch 2.6 does not say which device ``with torch.device(...)`` has set.
    if (device := torch.empty(0).device).type != "cpu":
        yield f"the default device is {device}"


def _named(module: ModuleType, name: str) -> object:
    value: object = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
