"""A small network trained, as most programs of PyTorch do it: a workload that no calibration call resembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from overhead_lens.scenario import Scenario


@dataclass(frozen=True)
class Params:
    """Rows of a batch and features of a layer: so few that all of it is overhead."""

    batch: int = 8
    width: int = 64


def inputs(params: Params) -> tuple[Any, ...]:
    """Network, optimizer, a batch and its classes; one thread, so that nothing waits for another."""
    torch.set_num_threads(1)
    width = params.width
    model = nn.Sequential(
        nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Dropout(0.1), nn.Linear(width, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters())
    return model, optimizer, torch.randn(params.batch, width), torch.randint(10, (params.batch,))


def forward(model: nn.Module, _optimizer: torch.optim.Optimizer, x: Tensor, _classes: Tensor) -> Tensor:
    """The network alone, with a graph for the backward pass."""
    out: Tensor = model(x)
    return out


def autocast(model: nn.Module, _optimizer: torch.optim.Optimizer, x: Tensor, _classes: Tensor) -> Tensor:
    """The network in bfloat16."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out: Tensor = model(x)
    return out


def gradients(model: nn.Module, _optimizer: torch.optim.Optimizer, x: Tensor, classes: Tensor) -> Tensor:
    """Forward, loss and backward."""
    loss = nn.functional.cross_entropy(model(x), classes)
    loss.backward()
    return loss


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, classes: Tensor) -> Tensor:
    """A step of training."""
    optimizer.zero_grad(set_to_none=True)
    loss = gradients(model, optimizer, x, classes)
    optimizer.step()
    return loss


SCENARIO = Scenario(
    name="training",
    summary="a small network: forward, backward and a step of AdamW",
    source="torch/nn/modules, torch/optim/adamw.py",
    params=Params,
    inputs=inputs,
    variants={"forward": forward, "autocast": autocast, "gradients": gradients, "step": step},
)
