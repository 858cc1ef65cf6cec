"""Training steps that differ in how they reach their model and its optimizer.

The first optimizer of a process imports the compiler of torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from overhead_lens.worker.state import State

X = torch.ones(4, 2)
Step = tuple[Callable[..., Any], tuple[Any, ...]]


def trained(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> torch.Tensor:
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


MODEL = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
OPTIMIZER = torch.optim.AdamW(MODEL.parameters())
SCHEDULER = torch.optim.lr_scheduler.StepLR(OPTIMIZER, 1)


class Trainer:
    """A step that is a method, with a counter of the class."""

    steps = 0

    def __init__(self) -> None:
        self.parts = SimpleNamespace(model=MODEL, optimizer=OPTIMIZER)
        self.losses: deque[float] = deque()

    def step(self, x: torch.Tensor) -> None:
        Trainer.steps += 1
        self.losses.append(float(trained(self.parts.model, self.parts.optimizer, x)))
        self.last = self.losses[-1]


@dataclass(slots=True)
class Slotted:
    """An object without a dictionary."""

    optimizer: torch.optim.Optimizer

    def __call__(self, x: torch.Tensor) -> None:
        trained(MODEL, self.optimizer, x)


def with_globals(x: torch.Tensor) -> torch.Tensor:
    return trained(MODEL, OPTIMIZER, x)


def scheduled(x: torch.Tensor) -> None:
    with_globals(x)
    SCHEDULER.step()


def closure() -> Callable[..., Any]:
    model, optimizer = MODEL, OPTIMIZER
    return lambda x: trained(model, optimizer, x)


STEPS: dict[str, Step] = {
    "arguments": (trained, (MODEL, OPTIMIZER, X)),
    "globals": (with_globals, (X,)),
    "called by name": (lambda x: with_globals(x), (X,)),
    "scheduler": (scheduled, (X,)),
    "closure": (closure(), (X,)),
    "partial": (partial(trained, MODEL, OPTIMIZER), (X,)),
    "method": (Trainer().step, (X,)),
    "object": (Slotted(OPTIMIZER), (X,)),
    "in an argument": (lambda parts, x: trained(parts["model"], *parts["rest"], x), ({"model": MODEL, "rest": [OPTIMIZER]}, X)),
}  # fmt: skip


def everything() -> dict[str, Any]:
    return dict(State(model=MODEL, optimizer=OPTIMIZER, scheduler=SCHEDULER, counter=Trainer).leaves)
