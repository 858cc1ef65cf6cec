"""Whether two ways of making a call give the same. Runs in the worker."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

_SEED = 20_240_307

EQUAL, CLOSE, DIFFERS, UNKNOWN = "equal", "close", "differs", "unknown"
"""Verdicts, the better first; ``close`` is within the tolerance of the dtype that ``torch.testing.assert_close`` has."""

_ORDER = (EQUAL, CLOSE, UNKNOWN, DIFFERS)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call returned and what it left in its arguments; ``reason`` if they are unknown."""

    value: Any = None
    reason: str = ""

    @property
    def has_gradient(self) -> bool:
        """Whether autograd could go back through what was returned."""
        return any(tensor.requires_grad for tensor in _tensors(self.value))


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with tensors of their own, which a call may write into; other objects are the same."""
    return tuple(map(_copied, args))


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in {tuple, list}:
        return type(value)(map(_copied, value))
    if type(value) is dict:
        return {key: _copied(each) for key, each in value.items()}
    return value


def outcome_of(call: Callable[..., Any], copies: tuple[Any, ...], keywords: Sequence[str] = ()) -> Outcome:
    """The outcome of a call with copies of its arguments and the usual seeds, which later calls cannot change."""
    _seed()
    split = len(copies) - len(keywords)
    result = call(*copies[:split], **dict(zip(keywords, copies[split:], strict=True)))
    return Outcome(_snapshot((result, copies)))


def _snapshot(value: Any) -> Any:
    """The value with tensors and containers of its own; the state of a module or an optimizer in its place."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, torch.nn.Module):
        return _snapshot(value.state_dict())
    if isinstance(value, torch.optim.Optimizer):
        return _snapshot(value.state_dict()["state"])
    if isinstance(value, Mapping):
        return {key: _snapshot(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [_snapshot(each) for each in value]
    return value


def compared(base: Outcome, other: Outcome) -> str:
    """``equal``, ``close``, ``differs`` or ``unknown``."""
    if base.reason or other.reason:
        return UNKNOWN
    return _worst(_compare(base.value, other.value))


def _worst(verdicts: Iterator[str]) -> str:
    return max(verdicts, key=_ORDER.index, default=EQUAL)


def _compare(base: Any, other: Any) -> Iterator[str]:
    if isinstance(base, torch.Tensor) or isinstance(other, torch.Tensor):
        yield _compare_tensors(base, other)
    elif isinstance(base, Mapping) and isinstance(other, Mapping):
        yield EQUAL if list(base) == list(other) else DIFFERS
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
    base, other = base.detach(), other.detach()
    for verdict, tolerance in ((EQUAL, {"rtol": 0.0, "atol": 0.0}), (CLOSE, {})):
        try:
            torch.testing.assert_close(other, base, equal_nan=True, check_stride=False, **tolerance)
        except AssertionError:
            continue
        except Exception:
            return UNKNOWN
        return verdict
    return DIFFERS


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
        return EQUAL if bool(base == other) or _both_nan(base, other) else DIFFERS
    except Exception:
        return UNKNOWN


def _both_nan(base: Any, other: Any) -> bool:
    return isinstance(base, float) and isinstance(other, float) and math.isnan(base) and math.isnan(other)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Tensors of what was returned."""
    if value is None:
        return
    waiting = [value[0]]
    while waiting:
        each = waiting.pop()
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, (tuple, list)):
            waiting += each


def _seed() -> None:
    random.seed(_SEED)
    torch.manual_seed(_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_SEED)
