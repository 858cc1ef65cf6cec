"""What a call leaves behind is seen and undone, wherever the call finds it."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from overhead_lens.remedies.reached import _Named, walk
from overhead_lens.worker.outputs import DIFFERS, EQUAL, UNKNOWN, compared, outcome_of, what_differs


@pytest.fixture
def training() -> ModuleType:
    return importlib.import_module("tests.worker.training")


@pytest.mark.parametrize(
    "name",
    ["arguments", "globals", "called by name", "scheduler", "closure", "partial", "method", "object", "in an argument"],
)
def test_a_training_step_is_seen_and_undone(name: str, training: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    call, args = training.STEPS[name]
    before = training.everything()
    base, again = (outcome_of(call, args) for _ in range(2))
    after = training.everything()
    assert (compared(base, again), what_differs(base, again)) == (EQUAL, "")
    assert [*before] == [*after]
    assert all(bool(torch.as_tensor(before[path] == after[path]).all()) for path in before if before[path] is not None)
    changed = {path for path, leaf in base.after.items() if leaf is not base.before.get(path)}
    # Weights, statistics of the normalization, what the optimizer keeps for each weight.
    for number, parameter in ((0, "weight"), (0, "bias"), (1, "weight"), (1, "running_mean")):
        assert any(f"['{number}']" in path and f"['{parameter}']" in path for path in changed)
    assert any(path.endswith("['exp_avg']") for path in changed)
    for name in ("adam", "adamw"):  # until torch 2.7 AdamW has a function of its own
        monkeypatch.setattr(sys.modules[f"torch.optim.{name}"], name, lambda *_, **__: None)
    assert compared(base, outcome_of(call, args)) == DIFFERS


def test_what_differs_is_named() -> None:
    trainer = SimpleNamespace(losses=[])

    def noted(loss: float) -> None:
        trainer.losses.append(loss)

    base, other = outcome_of(noted, (1.0,)), outcome_of(noted, (2.0,))
    assert what_differs(base, other) == "function.trainer.losses[0]"
    assert what_differs(outcome_of(lambda: 1, ()), outcome_of(lambda: 2, ())) == ""


GENERATOR, DRAW = torch.Generator(), random.Random(3)  # noqa: S311 (drawn numbers, no secret)
ARRAY, NUMBERS, PLACE = np.zeros(2), {1, 2}, torch.zeros(2)
SCALE = torch.nn.Parameter(torch.ones(2))
WEIGHT = torch.nn.Parameter(torch.ones(2))
INFERENCE = torch.inference_mode()(torch.zeros)(2)


def counted() -> int:
    global COUNT
    COUNT += 1
    return COUNT


COUNT = 0


def nonlocal_count() -> Callable[[], int]:
    count = 0

    def next_one() -> int:
        nonlocal count
        count += 1
        return count

    return next_one


def attribute() -> int:
    attribute.calls = getattr(attribute, "calls", 0) + 1  # type: ignore[attr-defined]
    return attribute.calls  # type: ignore[attr-defined, no-any-return]


def accumulated() -> torch.Tensor:
    WEIGHT.sum().backward()
    assert WEIGHT.grad is not None
    return WEIGHT.grad


def elsewhere() -> float:
    WEIGHT.data = WEIGHT.data + 1
    return float(WEIGHT.data[0])


def frozen() -> bool:
    WEIGHT.requires_grad_(not WEIGHT.requires_grad)
    return WEIGHT.requires_grad


def recorded() -> bool:
    PLACE.add_(SCALE * 2)
    return PLACE.requires_grad


@torch.inference_mode()
def cached() -> float:
    return float(INFERENCE.add_(1)[0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.rand(2, generator=GENERATOR),
        lambda: DRAW.random(),
        lambda: float(np.add(ARRAY, 1, out=ARRAY)[0]),
        lambda: NUMBERS.add(len(NUMBERS) + 5),
        lambda: PLACE.add_(1).tolist(),
        *(counted, nonlocal_count(), attribute, accumulated, elsewhere, frozen, recorded, cached),
    ],
)
def test_it_begins_where_the_call_before_it_began(call: Callable[[], Any]) -> None:
    base, again = (outcome_of(call, ()) for _ in range(2))
    assert compared(base, again) == EQUAL
    assert any(leaf is not base.before.get(path) for path, leaf in base.after.items())


def test_what_a_call_that_fails_has_changed_is_undone() -> None:
    def fails(x: torch.Tensor) -> None:
        x.add_(1)
        raise ValueError

    x = torch.zeros(2)
    with pytest.raises(ValueError):  # noqa: PT011 (the call's own)
        outcome_of(fails, (x,))
    assert x.tolist() == [0.0, 0.0]


def test_two_names_of_one_tensor_stay_so() -> None:
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)

    def step(given: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
        given.sum().backward()
        optimizer.step()

    assert outcome_of(step, (weight, optimizer)).after["args[0]"].tolist() == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda value: torch.full((3, 3), value).to_sparse(),
        lambda value: torch.full((3, 3), value).to_sparse_csr(),
        lambda value: torch.nested.nested_tensor(
            [torch.full((size, 3), value) for size in (2, 4)], layout=torch.jagged
        ),
        lambda value: torch.quantize_per_tensor(torch.full((3,), value), 0.1, 0, torch.quint8),
    ],
    ids=["sparse", "csr", "jagged", "quantized"],
)
def test_tensors_of_other_layouts_are_compared_and_put_back(make: Callable[[float], torch.Tensor]) -> None:
    def changes(given: torch.Tensor) -> torch.Tensor:
        before = given.detach().clone()
        given.copy_(make(2.0))
        return before

    given = make(1.0)
    unchanged = given.clone()
    try:
        given.clone().copy_(make(2.0))
    except RuntimeError as error:
        pytest.skip(f"this torch does not copy them: {error}")
    base, again = (outcome_of(changes, (given,)) for _ in range(2))
    assert compared(base, again) == EQUAL
    assert compared(base, outcome_of(torch.clone, (given,))) == DIFFERS
    torch.testing.assert_close(given, unchanged)


def test_tensors_without_values_are_compared() -> None:
    given = torch.ones(2, 3, device="meta")
    base, again, other = (outcome_of(call, (given,)) for call in (torch.relu, torch.relu, torch.t))
    assert [compared(base, each) for each in (again, other)] == [EQUAL, DIFFERS]


def test_what_cannot_be_copied_is_unknown() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    base = outcome_of(lambda: len(deep), ())
    assert (base.returned, base.reason) == (1, "its state cannot be copied: RecursionError")
    assert compared(base, base) == UNKNOWN


def test_a_wrapper_of_a_library_is_entered_for_what_it_wraps(training: ModuleType) -> None:
    wrapped = torch.compile(training.with_globals, backend="eager")
    reached = [value for _, value, _ in walk(wrapped, "", {})]
    assert any(value is training.OPTIMIZER for value in reached)
    spaces = {value.space["__name__"] for value in reached if isinstance(value, _Named)}
    assert training.__name__ in spaces
    assert not any(name.startswith("torch") for name in spaces)
