"""Calls of many small operators, whose kernel time a trace can only estimate: two training steps and a layer."""

from __future__ import annotations

from collections.abc import Callable

import torch


def _training(width: int, batch: int) -> Callable[[], None]:
    """A step of four layers with an optimizer that goes from parameter to parameter."""
    layers = (
        layer for _ in range(4) for layer in (torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.LayerNorm(width))
    )
    model, data = torch.nn.Sequential(*layers), torch.randn(batch, width)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

    def step() -> None:
        optimizer.zero_grad()
        model(data).pow(2).mean().backward()
        optimizer.step()

    return step


_SMALL, _LARGER = _training(16, 4), _training(128, 32)
_LAYER, _SEQUENCES = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0), torch.randn(2, 16, 64)


def training_of_16() -> None:
    """Batches of 4 in 16 features."""
    _SMALL()


def training_of_128() -> None:
    """Batches of 32 in 128 features."""
    _LARGER()


def transformer_layer() -> torch.Tensor:
    """Two sequences of 16 in 64 features, forward."""
    result: torch.Tensor = _LAYER(_SEQUENCES)
    return result
