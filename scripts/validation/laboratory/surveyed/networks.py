"""What neural networks are made of: layers, losses, attention, optimizers."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (as everyone calls it)
from torch import nn

from . import Call, functions


def calls() -> dict[str, Call]:
    """Name to call."""
    return _activations() | _images() | _words() | _losses() | _steps()


def _activations() -> dict[str, Call]:
    line = torch.randn(4_000_000)
    return {
        **functions(F, "celu elu gelu glu hardsigmoid hardswish hardtanh leaky_relu logsigmoid", line),
        **functions(F, "mish relu6 selu silu softplus softshrink", line),
        "dropout": lambda: F.dropout(line[:400_000]),
        "gelu tanh": lambda: F.gelu(line, approximate="tanh"),
        "gumbel_softmax": lambda: F.gumbel_softmax(line[:400_000].view(-1, 10)),
        "prelu": lambda: F.prelu(line.view(-1, 4), torch.ones(4)),
        **functions(line, "relu sigmoid"),
        "rrelu": lambda: F.rrelu(line, training=True),
        "threshold": lambda: F.threshold(line, 0.1, 0.0),
    }


def _images() -> dict[str, Call]:
    image, kernel = torch.randn(16, 16, 128, 128), torch.randn(16, 16, 3, 3)
    video = torch.randn(4, 8, 16, 32, 32)
    grid = torch.rand(16, 64, 64, 2) * 2 - 1
    room = torch.rand(4, 8, 16, 16, 3) * 2 - 1
    wide = image.contiguous(memory_format=torch.channels_last)
    few = image[:2].double()
    pooled, where = F.max_pool2d(image, 2, return_indices=True)
    offsets = torch.zeros(16, 2, 3)
    samples = torch.rand(16, 16, 2)
    return {
        **functions(F, "adaptive_avg_pool2d adaptive_max_pool2d", image, 7),
        "affine_grid": lambda: F.affine_grid(offsets + 1, [16, 16, 128, 128], align_corners=False),
        **functions(F, "avg_pool1d max_pool1d", image.view(16, 16, -1), 3),
        **functions(F, "avg_pool2d max_pool2d", image, 3, 1),
        "avg_pool2d channels_last": lambda: F.avg_pool2d(wide, 3, 1),
        **functions(F, "avg_pool3d max_pool3d", video, 3, 1),
        "batch_norm": lambda: F.batch_norm(image, torch.zeros(16), torch.ones(16)),
        "batch_norm channels_last": lambda: F.batch_norm(wide, torch.zeros(16), torch.ones(16)),
        "batch_norm training": lambda: F.batch_norm(image, None, None, training=True),
        **functions(F, "channel_shuffle group_norm", image, 4),
        "conv1d grouped": lambda: F.conv1d(image.view(16, 16, -1), kernel[:, :1, 0], groups=16),
        **functions(F, "conv2d conv_transpose2d", image, kernel),
        "conv2d channels_last": lambda: F.conv2d(wide, kernel),
        "conv2d dilated float64": lambda: F.conv2d(few, kernel.double(), dilation=2),
        "conv2d float64": lambda: F.conv2d(few, kernel.double()),
        "conv2d strided": lambda: F.conv2d(image, kernel, stride=2),
        "conv3d": lambda: F.conv3d(video, torch.ones(8, 8, 3, 3, 3)),
        "conv3d float64": lambda: F.conv3d(video[:1].double(), torch.ones(8, 8, 3, 3, 3).double()),
        "conv_transpose2d float64": lambda: F.conv_transpose2d(few, kernel.double()),
        "fold": lambda: F.fold(torch.ones(1, 144, 4_096), 64, 3, padding=1),
        "fractional_max_pool2d": lambda: F.fractional_max_pool2d(
            image, 2, output_ratio=(0.5, 0.5), _random_samples=samples
        ),
        "grid_sample": lambda: F.grid_sample(image, grid, align_corners=False),
        "grid_sample nearest": lambda: F.grid_sample(image, grid, "nearest", align_corners=False),
        "grid_sample of a volume": lambda: F.grid_sample(video, room, align_corners=False),
        "instance_norm": lambda: F.instance_norm(image),
        "interpolate": lambda: F.interpolate(image, scale_factor=2, mode="bilinear"),
        "interpolate area": lambda: F.interpolate(image, size=50, mode="area"),
        "interpolate bicubic": lambda: F.interpolate(image[:2], scale_factor=2, mode="bicubic"),
        "interpolate nearest": lambda: F.interpolate(image, scale_factor=2),
        "interpolate smoothly": lambda: F.interpolate(image, size=50, mode="bilinear", antialias=True),
        "interpolate trilinear": lambda: F.interpolate(video, scale_factor=2, mode="trilinear"),
        **functions(F, "local_response_norm pixel_shuffle pixel_unshuffle", image, 2),
        "lp_pool2d": lambda: F.lp_pool2d(image, 2, 2),
        "max_pool2d channels_last": lambda: F.max_pool2d(wide, 3, 1),
        "max_unpool2d": lambda: F.max_unpool2d(pooled, where, 2),
        "pad": lambda: F.pad(image, (2, 2, 2, 2), mode="reflect"),
        "pad constant": lambda: F.pad(image, (2, 2, 2, 2)),
        "pad replicate": lambda: F.pad(image, (2, 2, 2, 2), mode="replicate"),
        "unfold": lambda: F.unfold(image, 3),
    }


def _words() -> dict[str, Call]:
    half = torch.randn(500, 500)
    words, heads = torch.randn(10_000, 512), torch.randn(1, 8, 512, 64)
    ids, tall = torch.randint(100_000, (500_000,)), torch.randn(100_000, 16)
    bags = ids.view(-1, 10)
    text = torch.randn(50, 32, 64)
    recurrent = nn.LSTM(64, 128).requires_grad_(requires_grad=False)
    gated = nn.GRU(64, 128).requires_grad_(requires_grad=False)
    attention = nn.MultiheadAttention(64, 4).requires_grad_(requires_grad=False)
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True).eval().requires_grad_(requires_grad=False)
    eight = torch.randint(-9, 9, (1_024, 1_024), dtype=torch.int8)
    nested = torch.nested.nested_tensor([words[:1_000], words[1_000:3_000]])
    causal = torch.ones(512, 512, dtype=torch.bool).tril()
    left, right = torch.randn(5_000, 32), torch.randn(5_000, 32)
    return {
        "bilinear": lambda: F.bilinear(left, right, torch.ones(8, 32, 32)),
        **functions(F, "cosine_similarity pairwise_distance", words, words),
        "embedding": lambda: F.embedding(ids, tall),
        "embedding_bag": lambda: F.embedding_bag(bags, tall),
        "embedding_bag max": lambda: F.embedding_bag(bags, tall, mode="max"),
        "embedding_bag sum": lambda: F.embedding_bag(bags, tall, mode="sum"),
        "gru": lambda: gated(text),
        "int_mm": lambda: torch._int_mm(eight, eight),  # noqa: SLF001
        **functions(F, "layer_norm rms_norm", words, (512,)),
        "layer_norm bfloat16": lambda: F.layer_norm(words.bfloat16(), (512,)),
        "linear": lambda: F.linear(half, half, half[0]),
        "linear bfloat16": lambda: F.linear(half.bfloat16(), half.bfloat16()),
        "linear float16": lambda: F.linear(half.half(), half.half()),
        **functions(words, "log_softmax softmax", 1),
        "log_softmax columns": lambda: words.log_softmax(0),
        "lstm": lambda: recurrent(text),
        "multi_head_attention": lambda: attention(text, text, text),
        "nested softmax": lambda: torch.softmax(nested, -1),
        "nested to padded": lambda: nested.to_padded_tensor(0.0),
        "normalize": lambda: F.normalize(words),
        "one_hot": lambda: F.one_hot(ids[:10_000] % 512),
        "scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(heads, heads, heads),
        "scaled_dot_product_attention bfloat16": lambda: F.scaled_dot_product_attention(*[heads.bfloat16()] * 3),
        "scaled_dot_product_attention causal": lambda: F.scaled_dot_product_attention(
            heads, heads, heads, is_causal=True
        ),
        "scaled_dot_product_attention float64": lambda: F.scaled_dot_product_attention(*[heads.double()] * 3),
        "scaled_dot_product_attention masked": lambda: F.scaled_dot_product_attention(heads, heads, heads, causal),
        "softmax columns": lambda: words.softmax(0),
        "softmax bfloat16": lambda: words.bfloat16().softmax(1),
        "transformer layer": lambda: layer(text),
    }


def _losses() -> dict[str, Call]:
    line, words, classes = torch.rand(4_000_000), torch.randn(10_000, 512), torch.randint(512, (10_000,))
    signs = torch.where(torch.rand(10_000) > 0.5, 1, -1)
    maps, labels = torch.randn(4, 10, 256, 256), torch.randint(10, (4, 256, 256))
    steps, targets = torch.randn(100, 64, 32).log_softmax(2), torch.randint(1, 32, (64, 20))
    lengths = torch.full((64,), 100), torch.full((64,), 20)
    many = torch.zeros(10_000, 512, dtype=torch.long)
    return {
        **functions(F, "binary_cross_entropy binary_cross_entropy_with_logits huber_loss l1_loss", line, line),
        **functions(F, "mse_loss poisson_nll_loss smooth_l1_loss soft_margin_loss", line, line),
        "cosine_embedding_loss": lambda: F.cosine_embedding_loss(words, words, signs),
        **functions(F, "cross_entropy multi_margin_loss", words, classes),
        "cross_entropy of maps": lambda: F.cross_entropy(maps, labels),
        "ctc_loss": lambda: F.ctc_loss(steps, targets, *lengths),
        **functions(F, "hinge_embedding_loss multilabel_margin_loss", words, many - 1),
        "kl_div": lambda: F.kl_div(line, line, reduction="sum"),
        "margin_ranking_loss": lambda: F.margin_ranking_loss(line, line, line),
        "nll_loss": lambda: F.nll_loss(maps, labels),
        "triplet_margin_loss": lambda: F.triplet_margin_loss(words, words, words),
    }


def _steps() -> dict[str, Call]:
    def stepper(kind: Any, **options: Any) -> Call:
        weights = [torch.randn(1_000_000, requires_grad=True) for _ in range(2)]
        for weight in weights:
            weight.grad = torch.randn(1_000_000)
        optimizer = cache(lambda: kind(weights, **options))  # it imports the compiler
        return lambda: optimizer().step()

    clipped = [torch.randn(1_000_000, requires_grad=True) for _ in range(2)]
    for each in clipped:
        each.grad = torch.randn(1_000_000)
    return {
        "adagrad fused": stepper(torch.optim.Adagrad, fused=True),
        "adam": stepper(torch.optim.Adam, foreach=False),
        "adam foreach": stepper(torch.optim.Adam, foreach=True),
        "adam fused": stepper(torch.optim.Adam, fused=True),
        "adamw": stepper(torch.optim.AdamW),
        "clip_grad_norm_": lambda: nn.utils.clip_grad_norm_(clipped, 1e9),
        "rmsprop": stepper(torch.optim.RMSprop),
        "sgd": stepper(torch.optim.SGD, lr=0.1, momentum=0.9),
        "sgd fused": stepper(torch.optim.SGD, lr=0.1, momentum=0.9, fused=True),
    }
