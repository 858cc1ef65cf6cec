"""121 small Linears, nested four deep and three wide: the example of PyTorch's "Inside torch.compile Guards"."""

from __future__ import annotations

import torch
from torch import nn

DEPTH, WIDTH, FEATURES = 4, 3, 2


class Nested(nn.Module):
    """A Linear, and below it as many of the same."""

    def __init__(self, depth: int = DEPTH) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, FEATURES)
        self.inner = nn.ModuleList(Nested(depth - 1) for _ in range(WIDTH if depth else 0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Through the Linear and all that is below it."""
        x = self.linear(x)
        for module in self.inner:
            x = module(x)
        return x


def call(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """The module on one vector."""
    result: torch.Tensor = model(x)
    return result


def make() -> tuple[nn.Module, torch.Tensor]:
    """The module, without gradients, and a batch of one."""
    torch.manual_seed(0)
    return Nested().requires_grad_(False), torch.randn(1, FEATURES)
