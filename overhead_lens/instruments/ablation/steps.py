"""Times single steps of a compiled call, each small job done in several ways. Runs in the worker.

The jobs are those of the published ladder (PyTorch pull requests of March 2024): binding a kernel, checking a guard, entering
idle context managers, allocating an output.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C._dynamo import guards

from overhead_lens.errors import MeasurementError
from overhead_lens.instruments.ablation import generated
from overhead_lens.worker.loop import reference_ns, run_ns
from overhead_lens.worker.workload import calls_within

Sides = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]


def measure_steps(block_ns: int, rounds: int, seed: int) -> dict[str, Any]:
    """Time all sides of all pairs, one block of each in a round.

    Returns:
        The fields of ``evidence.RungTimes``, ``reasons`` by pair; ``rows``: ``rung`` (the side), ``block`` (the round),
        ``calls``, ``wall_ns``, ``reference_ns``.
    """
    pairs = {name: _made(make) for name, make in _PAIRS.items()}
    sides = {side: call for pair, _ in pairs.values() for side, call in pair.items()}
    counts = {side: calls_within(_settled_ns(*call), block_ns) for side, call in sides.items()}
    draw = random.Random(seed)  # noqa: S311 (an order, no secret)
    rows = []
    for number in range(rounds):
        for side in draw.sample(list(sides), len(sides)):
            count, yardstick_ns = counts[side], reference_ns()
            wall_ns = run_ns(*sides[side], count)
            row = {"rung": side, "block": number, "calls": count, "wall_ns": wall_ns, "reference_ns": yardstick_ns}
            rows.append(row)
    return {"reasons": {name: reason for name, (_, reason) in pairs.items()}, "rows": rows}


def _made(make: Callable[[], Sides]) -> tuple[Sides, str | None]:
    """The sides of a pair, or none and why."""
    try:
        return make(), None
    except MeasurementError as error:
        return {}, str(error)
    except Exception as error:
        return {}, f"it fails here: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _settled_ns(call: Callable[..., Any], args: tuple[Any, ...]) -> float:
    run_ns(call, args, 2_000)
    return run_ns(call, args, 2_000) / 2_000


def _binding() -> Sides:
    def add(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    one = torch.zeros(1)
    compiled = torch.compile(add)
    compiled(one)
    kernels = generated.kernel_calls(generated.graph_calls(lambda: compiled(one)))
    return {
        "kernel by ctypes": (generated.by_ctypes(kernels), ()),
        "kernel by C++ binding": (generated.bound(kernels), ()),
    }


def _guard() -> Sides:
    manager = getattr(guards, "RootGuardManager", None)
    if manager is None:
        raise MeasurementError("this torch has no guard managers")
    current, expected = object(), {}
    expected["backend"] = current
    python, native = manager(), manager()
    _add(python.add_lambda_guard, lambda _locals: expected["backend"] is current)
    _add(native.add_type_match_guard, id(dict))
    values: dict[str, Any] = {}
    if not (python.check(values) and native.check(values)):
        raise MeasurementError("this torch's guards do not accept what they were made for")
    return {"guard in Python": (python.check, (values,)), "guard in C++": (native.check, (values,))}


def _add(add_guard: Callable[..., None], what: Any) -> None:
    """Add a leaf guard; newer releases also take the user's stack."""
    try:
        add_guard(what, ["made by hand"], None)
    except TypeError:
        add_guard(what, ["made by hand"])


@contextlib.contextmanager
def _by_contextlib() -> Iterator[None]:
    yield


class _ByHand:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _context_managers() -> Sides:
    def none() -> None:
        pass

    def by_hand() -> None:
        with _ByHand():
            pass

    def by_contextlib() -> None:
        with _by_contextlib():
            pass

    return {
        "manager by contextlib": (by_contextlib, ()),
        "manager by hand": (by_hand, ()),
        "no context manager": (none, ()),
    }


def _allocation() -> Sides:
    allocate = getattr(guards, "_empty_strided_cpu", None)
    if allocate is None:
        raise MeasurementError("this torch has no empty_strided_cpu")

    def by_empty() -> torch.Tensor:
        return torch.empty((1,), dtype=torch.float32)

    def by_empty_strided() -> torch.Tensor:
        return torch.empty_strided((1,), (1,), dtype=torch.float32)

    def directly() -> Any:
        return allocate((1,), (1,), torch.float32)

    return {
        "torch.empty": (by_empty, ()),
        "torch.empty_strided": (by_empty_strided, ()),
        "empty_strided_cpu": (directly, ()),
    }


_PAIRS: dict[str, Callable[[], Sides]] = {
    "binding": _binding,
    "guard": _guard,
    "context_manager": _context_managers,
    "allocation": _allocation,
}
