"""What a call leaves behind in its arguments and in what its function reaches, and how that is undone. Runs in the worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch

from overhead_lens.remedies.reached import PLAIN, Holder, holder_of, walk

# How an optimizer computes is a setting, which a remedy may change for good, as is torch's mark of a module that it compiled.
_SETTINGS = ("['foreach']", "['fused']", "._is_torch_compile")


class State:
    """The state that objects reach, as it is when this is made.

    Attributes:
        leaves: Tensors, numbers and texts by path, which later calls cannot change.
    """

    def __init__(self, **roots: Any) -> None:
        self._roots = roots
        self._holders: list[tuple[Any, Holder]] = []
        # A tensor, another one in the same memory, and its values.
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = {}
        self.leaves: Mapping[str, Any] = dict(self._walk_leaves(entering=True))

    def _walk_leaves(self, *, entering: bool = False) -> Iterator[tuple[str, Any]]:
        visited: dict[int, Any] = {}
        for root, start in self._roots.items():
            for path, value, holder in walk(start, root, visited):
                if entering and holder is not None and holder.write is not None:
                    self._holders.append((value, holder))
                tensor = tensor_of(value)
                if tensor is not None:
                    if entering and id(value) not in self._tensors:
                        self._tensors[id(value)] = (tensor, tensor.detach(), copied(tensor))
                    original = self._tensors.get(id(value))
                    yield path, original[2] if original is not None and _same(tensor, original[2]) else copied(tensor)
                elif _is_leaf(value) and not path.endswith(_SETTINGS):
                    yield path, value

    def now(self) -> dict[str, Any]:
        """The leaves of this moment; an unchanged one is that of ``leaves``."""
        return dict(self._walk_leaves())

    def put_back(self) -> None:
        """Give everything the state that it had."""
        for value, holder in self._holders:
            if holder.write is not None and not _refers_to(value, holder):
                holder.write(holder.parts)
        for tensor, place, values in self._tensors.values():
            with torch.inference_mode(tensor.is_inference()), torch.no_grad():
                if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
                    # torch does not say whether such a tensor has other memory now.
                    if not _same(tensor, values):
                        tensor.copy_(values)
                else:
                    if not tensor.is_set_to(place):
                        tensor.data = place
                    if not _same(place, values):
                        place.copy_(values)
                if values.requires_grad and not tensor.requires_grad:
                    tensor.requires_grad_()
                elif tensor.requires_grad and not values.requires_grad:
                    # A view stays what autograd has made of it.
                    with suppress(RuntimeError):
                        tensor.detach_()


def _is_leaf(value: Any) -> bool:
    if isinstance(value, frozenset):
        return all(isinstance(each, PLAIN) for each in value)
    return isinstance(value, (*PLAIN, torch.dtype, torch.device))


def tensor_of(value: Any) -> torch.Tensor | None:
    """A tensor, or one in the memory of an array of NumPy; None for anything else."""
    if isinstance(value, torch.Tensor):
        return value
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray) or not value.flags.writeable:
        return None
    try:
        return torch.from_numpy(value)
    except (TypeError, ValueError):
        return None


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same values, with or without a gradient."""
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    alike = (one.shape, one.dtype, one.device, one.layout) == (other.shape, other.dtype, other.device, other.layout)
    return alike and one.requires_grad == other.requires_grad and _equal(one, other)


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """``torch.equal``, which knows no layout but the usual one, and no tensors without values."""
    if one.layout is torch.strided and not one.is_meta:
        return bool(torch.equal(one, other))
    try:
        torch.testing.assert_close(one, other, rtol=0.0, atol=0.0)
    except AssertionError:
        return False
    return True


def _refers_to(value: Any, holder: Holder) -> bool:
    now = holder_of(value)
    return (
        now is not None
        and list(now.parts) == list(holder.parts)
        and all(part is holder.parts[key] for key, part in now.parts.items())
    )
