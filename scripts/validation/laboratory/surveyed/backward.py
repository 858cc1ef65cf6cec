"""Backward passes alone: of a graph that is kept, in the calling thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (as everyone calls it)
from torch import Tensor, nn

from . import Call


def calls() -> dict[str, Call]:
    """Name to call."""
    forward_calls = _elements() | _rearranged() | _networks() | _algebra()
    return {f"{name} backward": call for name, call in forward_calls.items()}


def _pass(function: Callable[..., Any], *arguments: Any) -> Call:
    """The backward pass of one function; its graph is built at the first call."""

    @cache
    def graph() -> tuple[Tensor, list[Tensor], Tensor]:
        inputs = [each.detach().requires_grad_() if _has_gradient(each) else each for each in arguments]
        out = function(*inputs)
        return out, [each for each in inputs if _has_gradient(each)], torch.ones_like(out)

    def call() -> Any:
        out, inputs, ones = graph()
        return torch.autograd.grad(out, inputs, ones, retain_graph=True)

    return call


def _passes(module: Any, names: str, *arguments: Any) -> dict[str, Call]:
    """The backward passes of a module's functions with the same arguments, by their names."""
    return {name: _pass(getattr(module, name), *arguments) for name in names.split()}


def _has_gradient(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _elements() -> dict[str, Call]:
    line, square = torch.rand(2_000_000), torch.rand(1_500, 1_500)
    return {
        **_passes(torch, "abs sigmoid tanh exp log sqrt sin erf relu reciprocal square", line),
        **_passes(F, "dropout gelu silu elu leaky_relu softplus hardswish hardtanh mish logsigmoid glu", line),
        "add broadcast": _pass(torch.add, square, square[0]),
        "clamp": _pass(lambda x: x.clamp(0.2, 0.7), line),
        **_passes(torch, "cumprod cumsum log_softmax logsumexp prod softmax std", square, 1),
        **_passes(torch, "div mul", line, line),
        "lerp": _pass(lambda x, y: torch.lerp(x, y, 0.3), line, line),
        "max": _pass(lambda x: x.max(1).values, square),
        "maximum": _pass(torch.maximum, line, line.flip(0)),
        "mean": _pass(lambda x: x.mean(0), square),
        "norm": _pass(lambda x: x.norm(dim=1), square),
        "pow": _pass(lambda x: x.pow(3), line),
        "prelu": _pass(F.prelu, square, square[0, :1500]),
        "rrelu": _pass(lambda x: F.rrelu(x, training=True), line),
        "to bfloat16": _pass(lambda x: x.bfloat16(), line),
    }


def _rearranged() -> dict[str, Call]:
    line, square, tall = torch.rand(2_000_000), torch.rand(1_500, 1_500), torch.rand(100_000, 16)
    ids, places = torch.randint(100_000, (50_000,)), torch.rand(1_500, 1_500).argsort(1)
    flags = line > 0.5
    return {
        "expand": _pass(lambda x: x.expand(1_500, 1_500).contiguous(), square[0]),
        "flip": _pass(lambda x: x.flip(0), square),
        "gather": _pass(lambda x: x.gather(1, places), square),
        "index_add": _pass(lambda x, y: x.index_add(0, ids, y), tall, tall[:50_000]),
        "index_put": _pass(lambda x, y: x.index_put((ids,), y), tall, tall[:50_000]),
        "index_select": _pass(lambda x: x.index_select(0, ids), tall),
        "indexing": _pass(lambda x: x[ids], tall),
        "indexing by a mask": _pass(lambda x: x[flags], line),
        "masked_fill": _pass(lambda x: x.masked_fill(flags, 0.0), line),
        "repeat": _pass(lambda x: x.repeat(10), line[:200_000]),
        "roll": _pass(lambda x: x.roll(3, 1), square),
        "scatter_add": _pass(lambda x, y: x.scatter_add(1, places, y), square, square),
        "slice": _pass(lambda x: x[:, 1:-1], square),
        "sort": _pass(lambda x: x.sort(1).values, square),
        "split": _pass(lambda x: x.split(100, 1)[3], square),
        "topk": _pass(lambda x: x.topk(10).values, square),
        "triu": _pass(torch.triu, square),
        "unfold a dimension": _pass(lambda x: x.unfold(0, 20, 1), line[:100_000]),
        "where": _pass(lambda x, y: torch.where(flags, x, y), line, line),
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
        "adaptive_avg_pool2d": _pass(lambda x: F.adaptive_avg_pool2d(x, 7), image),
        "adaptive_max_pool2d": _pass(lambda x: F.adaptive_max_pool2d(x, 32), image.repeat(4, 4, 1, 1)),
        **_passes(F, "avg_pool2d max_pool2d", image, 3, 1),
        "avg_pool3d": _pass(lambda x: F.avg_pool3d(x, 3, 1), video),
        "batch_norm": _pass(lambda x: F.batch_norm(x, None, None, training=True), image),
        "batch_norm channels_last": _pass(lambda x: F.batch_norm(x, None, None, training=True), wide),
        "binary_cross_entropy": _pass(lambda x: F.binary_cross_entropy(x, line), line),
        **_passes(F, "conv2d conv_transpose2d", image, kernel),
        "conv2d float64": _pass(F.conv2d, few, fine),
        "conv3d": _pass(F.conv3d, video, torch.randn(8, 8, 3, 3, 3)),
        "conv_transpose2d float64": _pass(F.conv_transpose2d, few, fine),
        **_passes(F, "cross_entropy multi_margin_loss", words, classes),
        "cross_entropy of maps": _pass(lambda x: F.cross_entropy(x, labels), maps),
        "ctc_loss": _pass(lambda x: F.ctc_loss(x.log_softmax(2), targets, *lengths), steps),
        "embedding": _pass(lambda x: F.embedding(ids, x), table),
        "embedding_bag": _pass(lambda x: F.embedding_bag(ids.view(-1, 10), x), table),
        "fold": _pass(lambda x: F.fold(x, 64, 3, padding=1), torch.randn(1, 144, 4_096)),
        "grid_sample": _pass(lambda x, y: F.grid_sample(x, y, align_corners=False), image, grid),
        "group_norm": _pass(lambda x: F.group_norm(x, 4), image),
        **_passes(F, "huber_loss l1_loss mse_loss smooth_l1_loss", line, line),
        "interpolate": _pass(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), image),
        "interpolate bicubic": _pass(lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), image[:2]),
        "interpolate nearest": _pass(lambda x: F.interpolate(x, scale_factor=2), image),
        "kl_div": _pass(lambda x: F.kl_div(x, line, reduction="sum"), line),
        **_passes(F, "layer_norm rms_norm", words, (512,)),
        "linear": _pass(F.linear, words, words[:512]),
        "lstm": _pass(lambda x: recurrent(x)[0], text),
        "max_pool3d": _pass(lambda x: F.max_pool3d(x, 3, 1), video.repeat(4, 1, 1, 1, 1)),
        "multi_head_attention": _pass(lambda x: attention(x, x, x)[0], text),
        "pad": _pass(lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"), image),
        "pad replicate": _pass(lambda x: F.pad(x, (2, 2, 2, 2), mode="replicate"), image),
        "pixel_shuffle": _pass(lambda x: F.pixel_shuffle(x, 2), image),
        "scaled_dot_product_attention": _pass(F.scaled_dot_product_attention, heads, heads, heads),
        "transformer layer": _pass(encoder, text),
        "unfold": _pass(lambda x: F.unfold(x, 3), image),
    }


def _algebra() -> dict[str, Call]:
    half, batch, line = torch.randn(300, 300), torch.randn(64, 64, 64), torch.randn(100_000)
    positive = half @ half.T + 300 * torch.eye(300)
    return {
        "bmm": _pass(torch.bmm, batch, batch),
        "cdist": _pass(lambda x, y: torch.cdist(x, y, p=1), half, half),
        "cholesky": _pass(torch.linalg.cholesky, positive),
        "det": _pass(torch.linalg.det, positive / 300),
        "eigh": _pass(lambda x: torch.linalg.eigh(x).eigenvalues, positive[:200, :200]),
        "einsum": _pass(lambda x, y: torch.einsum("bij,bjk->bik", x, y), batch, batch),
        "inverse": _pass(torch.linalg.inv, positive),
        "mm": _pass(torch.mm, half, half),
        "pdist": _pass(torch.pdist, half),
        "qr": _pass(lambda x: torch.linalg.qr(x).R, half[:, :100]),
        "rfft": _pass(lambda x: torch.fft.rfft(x).abs(), line),
        "solve": _pass(torch.linalg.solve, positive, half),
        "svd": _pass(torch.linalg.svdvals, half[:200, :200]),
        "bilinear": _pass(F.bilinear, half[:, :64], half[:, 64:128], batch[:8]),
    }
