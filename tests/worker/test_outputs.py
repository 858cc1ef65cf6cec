"""Whether two outcomes are the same: numbers, tensors, containers, what a call wrote into its arguments."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from overhead_lens.worker.outputs import CLOSE, DIFFERS, EQUAL, UNKNOWN, Outcome, compared, outcome_of
from tests.worker.warm import ended

X = torch.arange(4.0)


class Opaque:
    """An object that equals nothing but itself."""


@pytest.mark.parametrize(
    ("base", "other", "verdict"),
    [
        (X, X.clone(), EQUAL),
        (X, X * (1 + 1e-7), CLOSE),
        (X, X + 1e-3, DIFFERS),
        (X, X.double(), DIFFERS),
        (X, X[:3], DIFFERS),
        (torch.tensor([float("nan")]), torch.tensor([float("nan")]), EQUAL),
        (X.reshape(2, 2), X.reshape(2, 2).t().contiguous().t(), EQUAL),
        ([X, 1], [X, 1], EQUAL),
        ([X, 1], [X, 2], DIFFERS),
        ([X], [X, X], DIFFERS),
        ({"a": X}, {"a": X + 1e-7}, CLOSE),
        ({"a": X}, {"b": X}, DIFFERS),
        (1.0, 1.0 + 1e-9, CLOSE),
        (float("nan"), float("nan"), EQUAL),
        ("a", "b", DIFFERS),
        (1, True, DIFFERS),
        (None, X, DIFFERS),
        (Opaque(), Opaque(), UNKNOWN),
        ([Opaque(), 1], [Opaque(), 2], DIFFERS),
    ],
)
def test_verdicts(base: Any, other: Any, verdict: str) -> None:
    assert compared(Outcome(base), Outcome(other)) == verdict


def test_what_cannot_be_told_is_unknown() -> None:
    assert compared(Outcome(X), Outcome(reason="it cannot be written")) == UNKNOWN


def test_writing_into_an_argument_is_part_of_the_outcome_and_is_undone() -> None:
    x = torch.zeros(3)
    apart, inside, again = (
        outcome_of(call, (x,)) for call in (lambda t: t + 1, lambda t: t.add_(1), lambda t: t.add_(1))
    )
    assert (compared(apart, inside), compared(inside, again)) == (DIFFERS, EQUAL)
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_settings_of_an_optimizer_are_no_outcome() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    outcomes = [
        outcome_of(lambda _: None, (torch.optim.AdamW([weight], foreach=foreach),), function=torch.relu)
        for foreach in (False, True)
    ]
    assert compared(*outcomes) == EQUAL


def test_random_numbers_are_the_same_each_time() -> None:
    assert compared(*(outcome_of(lambda: torch.rand(3), ()) for _ in range(2))) == EQUAL


def test_arguments_by_name() -> None:
    assert outcome_of(lambda a, *, b: a - b, (5, 3), ("b",)).returned == 2


def test_gradients() -> None:
    weight = torch.ones(2, requires_grad=True)
    counts = [outcome_of(call, (weight,)).gradients for call in (lambda w: {"y": [w * 2]}, lambda w: w.detach())]
    # The argument is one of them.
    assert counts == [2, 1]


@dataclass
class Answer:
    """What models return."""

    logits: torch.Tensor
    loss: float


def test_fields_of_a_dataclass_are_compared() -> None:
    base, other, wrong = (outcome_of(lambda y=y: Answer(y, 1.0), ()) for y in (X, X * (1 + 1e-7), X + 1))
    assert (compared(base, other), compared(base, wrong)) == (CLOSE, DIFFERS)
    assert compared(base, outcome_of(lambda: {"logits": X, "loss": 1.0}, ())) == DIFFERS


def test_an_array_of_numpy_is_compared_as_a_tensor() -> None:
    outcomes = [outcome_of(lambda y=y: y.numpy(), ()) for y in (X, X * (1 + 1e-7), X + 1)]
    assert [compared(outcomes[0], each) for each in outcomes] == [EQUAL, CLOSE, DIFFERS]


NEAR = [1.0, 1.0 + 1e-9, 1.0 + 2e-6, 1.0 + 1e-3, 1.02, float("nan"), float("inf"), 0.0, 2e-5, 9e-6]


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.int32, torch.bool]
)
def test_tensors_are_as_close_as_torch_says(dtype: torch.dtype) -> None:
    numbers = [
        torch.tensor(value).nan_to_num(3, 4).to(dtype) if not dtype.is_floating_point else torch.tensor(value).to(dtype)
        for value in NEAR
    ]
    for base in numbers:
        for other in numbers:
            verdict = DIFFERS
            for found, tolerance in ((CLOSE, {}), (EQUAL, {"rtol": 0, "atol": 0})):
                with contextlib.suppress(AssertionError):
                    torch.testing.assert_close(other, base, equal_nan=True, **tolerance)
                    verdict = found
            assert compared(Outcome(base), Outcome(other)) == verdict


def test_comparing_tensors_imports_no_distributed_tensors(tmp_path: Path) -> None:
    lines = (
        "import sys, torch; from overhead_lens.worker.outputs import Outcome, compared; before = {*sys.modules}",
        "print(compared(*(Outcome(torch.ones(3) + 1e-7 * n) for n in (0, 3))), compared(Outcome(1.0), Outcome(2.0)))",
        "print({'sympy', 'torch.distributed.tensor'} & ({*sys.modules} - before))",
    )
    assert ended("-c", "\n".join(lines), cwd=tmp_path).stdout == "close differs\nset()\n"
