"""Compiled calls: fused loops, calls of operators that inductor leaves as they are, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (as everyone calls it)
from torch import Tensor, nn

from . import Call


def calls() -> dict[str, Call]:
    """Name to call; each is compiled at its first call."""
    compiled_calls = _forward() | _trained()
    return {f"{name} compiled": call for name, call in compiled_calls.items()}


def _compiled(function: Callable[..., Any], *arguments: Any) -> Call:
    once = cache(lambda: torch.compile(function))  # it imports the compiler
    return lambda: once()(*arguments)


def _forward() -> dict[str, Call]:
    line, square, half = torch.randn(2_000_000), torch.randn(1_500, 1_500), torch.randn(400, 400)
    image, kernel = torch.randn(8, 16, 64, 64), torch.randn(16, 16, 3, 3)
    table, ids = torch.randn(50_000, 16), torch.randint(50_000, (200_000,))
    heads = torch.randn(1, 8, 512, 64)
    return {
        "bernoulli": _compiled(lambda x: torch.rand_like(x) > x, line),
        "cat": _compiled(lambda x: torch.cat([x + 1, x * 2], 1), square),
        "conv2d": _compiled(lambda x, y: F.conv2d(x, y).relu(), image, kernel),
        "cumsum": _compiled(lambda x: (x + 1).cumsum(1), square),
        "embedding": _compiled(lambda x, y: F.embedding(x, y) + 1, ids, table),
        "gelu": _compiled(F.gelu, line),
        "index_put": _compiled(lambda x, y: x.index_put((y,), x[:1] + 1, accumulate=True), table, ids),
        "linear": _compiled(lambda x: F.linear(x, x).relu(), half),
        "max_pool2d": _compiled(lambda x: F.max_pool2d(x, 3, 1), image),
        "mm": _compiled(lambda x: x @ x + 1, half),
        "nonzero": _compiled(lambda x: x > 0, line),
        "randn": _compiled(torch.randn_like, line),
        "rows": _compiled(lambda x: x.sum(1), square),
        "scaled_dot_product_attention": _compiled(lambda x: F.scaled_dot_product_attention(x, x, x), heads),
        "scatter_add": _compiled(lambda x, y: torch.zeros(50_000).scatter_add(0, x, y), ids, line[:200_000]),
        "softmax": _compiled(lambda x: x.softmax(1), square),
        "sort": _compiled(lambda x: x.sort(), line[:200_000]),
        "sum": _compiled(lambda x: (x * x).sum(), line),
        "transposed": _compiled(lambda x: (x.T + x).contiguous(), square),
        "var": _compiled(lambda x: x.var(1), square),
    }


def _trained() -> dict[str, Call]:
    words, classes = torch.randn(1_000, 256), torch.randint(64, (1_000,))
    image = torch.randn(8, 3, 64, 64)
    dense = nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 64))
    deep = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(1))

    def step(model: nn.Module, loss: Callable[[Tensor], Tensor], x: Tensor) -> Call:
        once = _compiled(lambda given: loss(model(given)), x)
        return lambda: once().backward()

    return {
        "training dense": step(dense, lambda out: F.cross_entropy(out, classes), words),
        "training deep": step(deep, lambda out: out.square().mean(), image),
    }
