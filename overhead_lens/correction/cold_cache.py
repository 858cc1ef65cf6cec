"""Calls of many different operators, which push the profiler's code out of the caches. Runs in the worker."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

Call = Callable[[], object]


def varied(count: int) -> Call:
    """A call of ``count`` different operators, at most fifty, on a few elements."""
    operators = _operators()[:count]

    def call() -> None:
        for operator in operators:
            operator()

    return call


def _operators() -> list[Call]:
    vector, matrix, places = torch.ones(8), torch.ones(4, 4), torch.tensor([0, 1])
    mask, row = vector > 0, torch.ones(4)
    return [
        vector.neg,
        lambda: matrix.view(16),
        lambda: torch.ones(3),
        matrix.t,
        vector.detach,
        lambda: torch.empty_like(vector),
        vector.clone,
        lambda: torch.mm(matrix, matrix),
        lambda: torch.stack([vector, vector]),
        lambda: torch.split(matrix, 1),
        matrix.mean,
        lambda: vector + vector,
        lambda: vector * 2,
        lambda: vector.add_(0),
        lambda: torch.addcmul(vector, vector, vector),
        vector.sqrt,
        vector.exp,
        vector.abs,
        lambda: vector.lerp(vector, 0.5),
        lambda: torch.addcdiv(vector, vector, vector),
        lambda: functional.layer_norm(matrix, (4,)),
        lambda: matrix.softmax(1),
        lambda: functional.gelu(matrix),
        lambda: functional.linear(matrix, matrix, row),
        lambda: torch.cat([matrix, matrix]),
        lambda: torch.where(mask, vector, vector),
        lambda: vector[places],
        vector.sum,
        lambda: matrix.max(1),
        matrix.argmax,
        vector.bfloat16,
        lambda: vector.unsqueeze(0).expand(4, 8),
        lambda: matrix.transpose(0, 1).contiguous(),
        lambda: torch.zeros(4),
        vector.double,
        vector[0].item,
        lambda: torch.bmm(matrix[None], matrix[None]),
        lambda: matrix.cumsum(0),
        lambda: vector.clamp(0, 1),
        lambda: torch.arange(4),
        lambda: matrix.sort(1),
        lambda: vector.pow(2),
        vector.sigmoid,
        vector.tanh,
        matrix.std,
        vector.relu,
        lambda: vector.repeat(2),
        lambda: vector.flip(0),
        matrix.triu,
        lambda: vector.masked_fill(mask, 0.0),
    ]
