"""Whether two outcomes are the same: numbers, tensors, containers, what a call wrote into its arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from overhead_lens.worker.outputs import CLOSE, DIFFERS, EQUAL, UNKNOWN, Outcome, compared, copied, outcome_of

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


def test_writing_into_an_argument_is_part_of_the_outcome_and_leaves_the_argument_alone() -> None:
    x = torch.zeros(3)
    apart = outcome_of(lambda t: t + 1, copied((x,)))
    inside = outcome_of(lambda t: t.add_(1), copied((x,)))
    assert compared(apart, inside) == DIFFERS
    assert compared(inside, outcome_of(lambda t: t.add_(1), copied((x,)))) == EQUAL
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_a_later_call_does_not_change_an_outcome() -> None:
    buffer, model = torch.zeros(3), torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def writing(step: float) -> dict[str, torch.Tensor]:
        return {"y": torch.add(torch.ones(3), step, out=buffer)}

    def training(step: float, *_: Any) -> None:
        model.weight.grad = torch.full((1, 1), step)
        optimizer.step()

    for call, rest in ((writing, ()), (training, (model,)), (training, (optimizer,)), (training, (model.weight,))):
        outcomes = [outcome_of(call, (step, *rest)).value for step in (1.0, 2.0)]
        assert compared(*(Outcome((result, rest)) for result, (_, *rest) in outcomes)) == DIFFERS


def test_settings_of_an_optimizer_are_no_outcome() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    outcomes = [
        outcome_of(lambda _: None, (torch.optim.AdamW([weight], foreach=foreach),)) for foreach in (False, True)
    ]
    assert compared(*outcomes) == EQUAL


def test_random_numbers_are_the_same_each_time() -> None:
    assert compared(*(outcome_of(lambda: torch.rand(3), ()) for _ in range(2))) == EQUAL


def test_arguments_by_name() -> None:
    assert outcome_of(lambda a, *, b: a - b, (5, 3), ("b",)).value[0] == 2


def test_gradients() -> None:
    weight = torch.ones(2, requires_grad=True)
    assert outcome_of(lambda w: {"y": [w * 2]}, copied((weight,))).has_gradient
    assert not outcome_of(lambda w: w.detach(), copied((weight,))).has_gradient


def test_copies_keep_what_is_no_tensor() -> None:
    module, x = torch.nn.Linear(2, 2), torch.ones(2, requires_grad=True)
    (first, (second, third), named) = copied((module, [x, 3], {"a": x}))
    assert first is module
    assert (third, second is x, second.requires_grad, second.is_leaf) == (3, False, True, True)
    assert named["a"] is not x
