"""Backward passes alone: of a graph that is kept, in the calling thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (as everyone calls it)
from torch import Tensor, nn

from . import Call


def calls() -> dict[str, Call]:
    """Name to call."""
    forward_calls = _elements() | _rearranged() | _networks() | _algebra()
    return {f"{name} backward": call for name, call in forward_calls.items()}


class _Backward:
    """The backward pass of one function; its graph is built at the first call."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._function, self._arguments = function, arguments
        self._graph: tuple[Tensor, list[Tensor], Tensor] | None = None

    def __call__(self) -> Any:
        if self._graph is None:
            inputs = [each.detach().requires_grad_() if _has_gradient(each) else each for each in self._arguments]
            out = self._function(*inputs)
            self._graph = out, [each for each in inputs if _has_gradient(each)], torch.ones_like(out)
        out, inputs, ones = self._graph
        return torch.autograd.grad(out, inputs, ones, retain_graph=True)


def _has_gradient(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _elements() -> dict[str, Call]:
    line, square = torch.rand(2_000_000), torch.rand(1_500, 1_500)
    unary = ("abs", "sigmoid", "tanh", "exp", "log", "sqrt", "sin", "erf", "relu", "reciprocal", "square")
    nonlinear = ("gelu", "silu", "elu", "leaky_relu", "softplus", "hardswish", "hardtanh", "mish", "logsigmoid", "glu")
    return {
        **{name: _Backward(getattr(torch, name), line) for name in unary},
        **{name: _Backward(getattr(F, name), line) for name in nonlinear},
        "add broadcast": _Backward(torch.add, square, square[0]),
        "clamp": _Backward(lambda x: x.clamp(0.2, 0.7), line),
        "cumprod": _Backward(lambda x: x.cumprod(1), square),
        "cumsum": _Backward(lambda x: x.cumsum(1), square),
        "div": _Backward(torch.div, line, line),
        "dropout": _Backward(F.dropout, line),
        "lerp": _Backward(lambda x, y: torch.lerp(x, y, 0.3), line, line),
        "log_softmax": _Backward(lambda x: x.log_softmax(1), square),
        "logsumexp": _Backward(lambda x: x.logsumexp(1), square),
        "max": _Backward(lambda x: x.max(1).values, square),
        "maximum": _Backward(torch.maximum, line, line.flip(0)),
        "mean": _Backward(lambda x: x.mean(0), square),
        "mul": _Backward(torch.mul, line, line),
        "norm": _Backward(lambda x: x.norm(dim=1), square),
        "pow": _Backward(lambda x: x.pow(3), line),
        "prelu": _Backward(F.prelu, square, square[0, :1500]),
        "prod": _Backward(lambda x: x.prod(1), square),
        "rrelu": _Backward(lambda x: F.rrelu(x, training=True), line),
        "softmax": _Backward(lambda x: x.softmax(1), square),
        "std": _Backward(lambda x: x.std(1), square),
        "to bfloat16": _Backward(lambda x: x.bfloat16(), line),
    }


def _rearranged() -> dict[str, Call]:
    line, square, tall = torch.rand(2_000_000), torch.rand(1_500, 1_500), torch.rand(100_000, 16)
    ids, places = torch.randint(100_000, (50_000,)), torch.rand(1_500, 1_500).argsort(1)
    flags = line > 0.5
    return {
        "expand": _Backward(lambda x: x.expand(1_500, 1_500).contiguous(), square[0]),
        "flip": _Backward(lambda x: x.flip(0), square),
        "gather": _Backward(lambda x: x.gather(1, places), square),
        "index_add": _Backward(lambda x, y: x.index_add(0, ids, y), tall, tall[:50_000]),
        "index_put": _Backward(lambda x, y: x.index_put((ids,), y), tall, tall[:50_000]),
        "index_select": _Backward(lambda x: x.index_select(0, ids), tall),
        "indexing": _Backward(lambda x: x[ids], tall),
        "indexing by a mask": _Backward(lambda x: x[flags], line),
        "masked_fill": _Backward(lambda x: x.masked_fill(flags, 0.0), line),
        "repeat": _Backward(lambda x: x.repeat(10), line[:200_000]),
        "roll": _Backward(lambda x: x.roll(3, 1), square),
        "scatter_add": _Backward(lambda x, y: x.scatter_add(1, places, y), square, square),
        "slice": _Backward(lambda x: x[:, 1:-1], square),
        "sort": _Backward(lambda x: x.sort(1).values, square),
        "split": _Backward(lambda x: x.split(100, 1)[3], square),
        "topk": _Backward(lambda x: x.topk(10).values, square),
        "triu": _Backward(torch.triu, square),
        "unfold a dimension": _Backward(lambda x: x.unfold(0, 20, 1), line[:100_000]),
        "where": _Backward(lambda x, y: torch.where(flags, x, y), line, line),
    }


def _networks() -> dict[str, Call]:
    image, kernel = torch.randn(8, 16, 64, 64), torch.randn(16, 16, 3, 3)
    video = torch.randn(2, 8, 16, 32, 32)
    few, fine = image[:1].double(), kernel.double()
    words, classes = torch.randn(4_000, 512), torch.randint(512, (4_000,))
    table, ids = torch.randn(50_000, 16), torch.randint(50_000, (200_000,))
    heads, grid = torch.randn(1, 8, 512, 64), torch.rand(8, 64, 64, 2) * 2 - 1
    text, maps, labels = torch.randn(50, 32, 64), torch.randn(4, 10, 128, 128), torch.randint(10, (4, 128, 128))
    line = torch.rand(2_000_000)
    steps, targets = torch.randn(100, 64, 32), torch.randint(1, 32, (64, 20))
    lengths = torch.full((64,), 100), torch.full((64,), 20)
    recurrent = nn.LSTM(64, 128)
    attention, encoder = nn.MultiheadAttention(64, 4), nn.TransformerEncoderLayer(64, 4, 256)
    wide = image.contiguous(memory_format=torch.channels_last)
    return {
        "adaptive_avg_pool2d": _Backward(lambda x: F.adaptive_avg_pool2d(x, 7), image),
        "adaptive_max_pool2d": _Backward(lambda x: F.adaptive_max_pool2d(x, 32), image.repeat(4, 4, 1, 1)),
        "avg_pool2d": _Backward(lambda x: F.avg_pool2d(x, 3, 1), image),
        "avg_pool3d": _Backward(lambda x: F.avg_pool3d(x, 3, 1), video),
        "batch_norm": _Backward(lambda x: F.batch_norm(x, None, None, training=True), image),
        "batch_norm channels_last": _Backward(lambda x: F.batch_norm(x, None, None, training=True), wide),
        "binary_cross_entropy": _Backward(lambda x: F.binary_cross_entropy(x, line), line),
        "conv2d": _Backward(F.conv2d, image, kernel),
        "conv2d float64": _Backward(F.conv2d, few, fine),
        "conv3d": _Backward(F.conv3d, video, torch.randn(8, 8, 3, 3, 3)),
        "conv_transpose2d": _Backward(F.conv_transpose2d, image, kernel),
        "conv_transpose2d float64": _Backward(F.conv_transpose2d, few, fine),
        "cross_entropy": _Backward(lambda x: F.cross_entropy(x, classes), words),
        "cross_entropy of maps": _Backward(lambda x: F.cross_entropy(x, labels), maps),
        "ctc_loss": _Backward(lambda x: F.ctc_loss(x.log_softmax(2), targets, *lengths), steps),
        "embedding": _Backward(lambda x: F.embedding(ids, x), table),
        "embedding_bag": _Backward(lambda x: F.embedding_bag(ids.view(-1, 10), x), table),
        "fold": _Backward(lambda x: F.fold(x, 64, 3, padding=1), torch.randn(1, 144, 4_096)),
        "grid_sample": _Backward(lambda x, y: F.grid_sample(x, y, align_corners=False), image, grid),
        "group_norm": _Backward(lambda x: F.group_norm(x, 4), image),
        "huber_loss": _Backward(F.huber_loss, line, line),
        "interpolate": _Backward(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), image),
        "interpolate bicubic": _Backward(lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), image[:2]),
        "interpolate nearest": _Backward(lambda x: F.interpolate(x, scale_factor=2), image),
        "kl_div": _Backward(lambda x: F.kl_div(x, line, reduction="sum"), line),
        "l1_loss": _Backward(F.l1_loss, line, line),
        "layer_norm": _Backward(lambda x: F.layer_norm(x, (512,)), words),
        "linear": _Backward(F.linear, words, words[:512]),
        "lstm": _Backward(lambda x: recurrent(x)[0], text),
        "max_pool2d": _Backward(lambda x: F.max_pool2d(x, 3, 1), image),
        "max_pool3d": _Backward(lambda x: F.max_pool3d(x, 3, 1), video.repeat(4, 1, 1, 1, 1)),
        "mse_loss": _Backward(F.mse_loss, line, line),
        "multi_head_attention": _Backward(lambda x: attention(x, x, x)[0], text),
        "multi_margin_loss": _Backward(lambda x: F.multi_margin_loss(x, classes), words),
        "pad": _Backward(lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"), image),
        "pad replicate": _Backward(lambda x: F.pad(x, (2, 2, 2, 2), mode="replicate"), image),
        "pixel_shuffle": _Backward(lambda x: F.pixel_shuffle(x, 2), image),
        "rms_norm": _Backward(lambda x: F.rms_norm(x, (512,)), words),
        "scaled_dot_product_attention": _Backward(F.scaled_dot_product_attention, heads, heads, heads),
        "smooth_l1_loss": _Backward(F.smooth_l1_loss, line, line),
        "transformer layer": _Backward(encoder, text),
        "unfold": _Backward(lambda x: F.unfold(x, 3), image),
    }


def _algebra() -> dict[str, Call]:
    half, batch, line = torch.randn(300, 300), torch.randn(64, 64, 64), torch.randn(100_000)
    positive = half @ half.T + 300 * torch.eye(300)
    return {
        "bmm": _Backward(torch.bmm, batch, batch),
        "cdist": _Backward(lambda x, y: torch.cdist(x, y, p=1), half, half),
        "cholesky": _Backward(torch.linalg.cholesky, positive),
        "det": _Backward(torch.linalg.det, positive / 300),
        "eigh": _Backward(lambda x: torch.linalg.eigh(x).eigenvalues, positive[:200, :200]),
        "einsum": _Backward(lambda x, y: torch.einsum("bij,bjk->bik", x, y), batch, batch),
        "inverse": _Backward(torch.linalg.inv, positive),
        "mm": _Backward(torch.mm, half, half),
        "pdist": _Backward(torch.pdist, half),
        "qr": _Backward(lambda x: torch.linalg.qr(x).R, half[:, :100]),
        "rfft": _Backward(lambda x: torch.fft.rfft(x).abs(), line),
        "solve": _Backward(torch.linalg.solve, positive, half),
        "svd": _Backward(torch.linalg.svdvals, half[:200, :200]),
        "bilinear": _Backward(F.bilinear, half[:, :64], half[:, 64:128], batch[:8]),
    }
