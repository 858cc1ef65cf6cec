"""A tiny training step, compiled: nearly all of it is overhead."""

import torch
from _options import read_options
from torch import nn


@torch.compile
def loss_of(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """A product, one added, the positive part summed up."""
    return torch.relu(x @ weight + 1).sum()


def prepared(rows: int = 8, width: int = 32) -> tuple[torch.optim.Optimizer, torch.Tensor, nn.Parameter]:
    """The optimizer, the batch and the weight."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(width, width))
    return torch.optim.SGD([weight], lr=1e-4), torch.randn(rows, width), weight


def step(optimizer: torch.optim.Optimizer, x: torch.Tensor, weight: nn.Parameter) -> torch.Tensor:
    """One step of the training; returns the loss."""
    optimizer.zero_grad()
    loss: torch.Tensor = loss_of(x, weight)
    loss.backward()
    optimizer.step()
    return loss.detach()


def main() -> None:
    """Train and print the loss."""
    options = read_options(__doc__, steps=40_000, rows=8, width=32)
    optimizer, x, weight = prepared(options.rows, options.width)
    for _ in range(options.steps):
        loss = step(optimizer, x, weight)
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
