"""Whether two ways of making a call give the same. Runs in the worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch.testing._comparison import default_tolerances

from overhead_lens.worker.state import State, copied, tensor_of
from overhead_lens.worker.workload import seed

EQUAL, CLOSE, DIFFERS, UNKNOWN = "equal", "close", "differs", "unknown"
"""Verdicts, the better first; ``close`` is within the tolerance of the dtype that ``torch.testing.assert_close`` has."""

_ORDER = (EQUAL, CLOSE, UNKNOWN, DIFFERS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call returned and what it left behind; ``reason`` if they are unknown.

    Attributes:
        before, after: Leaves of the state before and after the call, by path.
    """

    returned: Any = None
    after: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    @property
    def gradients(self) -> int:
        """Number of tensors through which autograd could go back."""
        return sum(tensor.requires_grad for tensor in _tensors([self.returned, self.after]))


def outcome_of(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    keywords: Sequence[str] = (),
    *,
    function: Any = None,
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Outcome:
    """The outcome of a call with the usual seeds. Later calls cannot change it, and what the call changed is put back.

    Args:
        function: What reaches the state, if that is not the call itself.
        inside: The context that it is called in.
    """
    state, reason = State(), ""
    try:
        state = State(function=function or call, args=args)
    except Exception as error:
        reason = f"its state cannot be copied: {type(error).__name__}"
    split = len(args) - len(keywords)
    try:
        with inside():
            seed()
            returned = _snapshot(call(*args[:split], **dict(zip(keywords, args[split:], strict=True))))
        return Outcome(returned, state.now(), state.leaves, reason)
    finally:
        state.put_back()


def _snapshot(value: Any) -> Any:
    """The value with tensors and containers of its own; fields and states in the place of objects."""
    tensor = tensor_of(value)
    if tensor is not None:
        return copied(tensor)
    if isinstance(value, (torch.nn.Module, torch.optim.Optimizer)):
        state = value.state_dict()
        return _snapshot(state if isinstance(value, torch.nn.Module) else state["state"])
    if isinstance(value, Mapping):
        return {key: _snapshot(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_snapshot(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {
            "": type(value).__qualname__,
            **{each.name: _snapshot(getattr(value, each.name)) for each in fields(value)},
        }
    return value


def compared(base: Outcome, other: Outcome) -> str:
    """``equal``, ``close``, ``differs`` or ``unknown``."""
    if base.reason or other.reason:
        return UNKNOWN
    return _worst(_compare([base.returned, base.after], [other.returned, other.after]))


def what_differs(base: Outcome, other: Outcome) -> str:
    """The path of the first thing that a call left otherwise; empty if that is what it returned."""
    if _worst(_compare(base.returned, other.returned)) not in {EQUAL, CLOSE}:
        return ""
    paths = [*base.after, *other.after.keys() - base.after.keys()]
    same = (
        path in base.after and path in other.after and _worst(_compare(base.after[path], other.after[path]))
        for path in paths
    )
    return next((path for path, verdict in zip(paths, same, strict=True) if verdict not in {EQUAL, CLOSE}), "")


def _worst(verdicts: Iterator[str]) -> str:
    return max(verdicts, key=_ORDER.index, default=EQUAL)


def _compare(base: Any, other: Any) -> Iterator[str]:
    if isinstance(base, torch.Tensor) or isinstance(other, torch.Tensor):
        yield _compare_tensors(base, other)
    elif isinstance(base, Mapping) and isinstance(other, Mapping):
        yield EQUAL if base.keys() == other.keys() else DIFFERS
        for key in base:
            if key in other:
                yield from _compare(base[key], other[key])
    elif isinstance(base, (tuple, list)) and isinstance(other, (tuple, list)):
        yield EQUAL if len(base) == len(other) else DIFFERS
        for one, another in zip(base, other, strict=False):
            yield from _compare(one, another)
    elif isinstance(base, (float, complex)) and isinstance(other, (float, complex)):
        yield _compare_numbers(base, other)
    else:
        yield _compare_objects(base, other)


def _compare_tensors(base: Any, other: Any) -> str:
    if not (isinstance(base, torch.Tensor) and isinstance(other, torch.Tensor)):
        return DIFFERS
    if base is other:
        return EQUAL
    base, other = base.detach(), other.detach()
    for verdict, tolerance in ((EQUAL, {"rtol": 0.0, "atol": 0.0}), (CLOSE, {})):
        try:
            _assert_close(other, base, **tolerance)
        except AssertionError:
            continue
        except Exception:
            return UNKNOWN
        return verdict
    return DIFFERS


def _assert_close(actual: torch.Tensor, expected: torch.Tensor, **tolerance: float) -> None:
    """``torch.testing.assert_close``, which imports DTensor and SymPy: seconds that plain tensors need not take.

    Raises:
        AssertionError: The tensors are not close.
    """
    tensors = (actual, expected)
    if not all(_is_plain(each) for each in tensors):
        torch.testing.assert_close(actual, expected, equal_nan=True, check_stride=False, **tolerance)
        return
    if not tolerance:
        tolerance = dict(zip(("rtol", "atol"), default_tolerances(*tensors), strict=True))
    alike = all(getattr(actual, name) == getattr(expected, name) for name in ("shape", "device", "dtype"))
    if not (alike and torch.isclose(actual, expected, equal_nan=True, **tolerance).all()):
        raise AssertionError


def _is_plain(tensor: torch.Tensor) -> bool:
    # Of one byte torch has floats that assert_close compares bit by bit.
    one_byte = tensor.is_floating_point() and tensor.element_size() == 1
    is_dense = tensor.layout is torch.strided and tensor.device.type in {"cpu", "cuda"}
    return type(tensor) is torch.Tensor and is_dense and not (tensor.is_quantized or one_byte)


def _compare_numbers(base: complex, other: complex) -> str:
    # Two tensors for each of a million numbers take a minute.
    if base == other:
        return EQUAL
    return _compare_tensors(*(torch.tensor(number, dtype=torch.complex128) for number in (base, other)))


def _compare_objects(base: Any, other: Any) -> str:
    if type(base) is not type(other):
        return DIFFERS
    if getattr(type(base), "__eq__", None) is object.__eq__:
        return EQUAL if base is other else UNKNOWN
    try:
        return EQUAL if bool(base == other) else DIFFERS
    except Exception:
        return UNKNOWN


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (Mapping, list)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(each)
