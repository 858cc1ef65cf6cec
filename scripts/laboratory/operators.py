"""Operators on so much data that nearly all of their time is the kernel's: which one is called can be changed while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (as everyone calls it)
from known_cost import COST, Params

from overhead_lens.scenario import Scenario

Call = Callable[[], Any]


def calls() -> dict[str, Call]:
    """Name to call; each takes about a millisecond or more."""
    torch.set_num_threads(1)
    torch.manual_seed(7)
    line, small = torch.randn(10_000_000), torch.rand(400_000)
    square, half = torch.randn(3_000, 3_000), torch.randn(500, 500)
    tall, ids = torch.randn(100_000, 16), torch.randint(100_000, (500_000,))
    image, kernel = torch.randn(16, 16, 128, 128), torch.randn(16, 16, 3, 3)
    batch, whole = torch.randn(256, 64, 64), torch.randint(100, (200, 200))
    words, classes = torch.randn(10_000, 512), torch.randint(512, (10_000,))
    positive = half @ half.T + 500 * torch.eye(500)
    sparse = (square * (square > 1.5)).to_sparse_csr()
    heads = torch.randn(1, 8, 512, 64)
    flags = line > 0
    places = square[:100].argsort(1).repeat(30, 1)
    grid = torch.rand(16, 64, 64, 2) * 2 - 1
    many = [torch.randn(1_000_000) for _ in range(10)]
    return {
        "abs": line.abs,
        "add": lambda: line + line,
        "add broadcast": lambda: square + square[0],
        "add transposed": lambda: square + square.T,
        "addcmul": lambda: torch.addcmul(line, line, line),
        "addmm": lambda: torch.addmm(half, half, half),
        "all": flags.all,
        "any": (~flags).any,
        "arange": lambda: torch.arange(10_000_000),
        "argmax": lambda: square.argmax(1),
        "argsort": small.argsort,
        "avg_pool2d": lambda: F.avg_pool2d(image, 3, 1),
        "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(image, 7),
        "baddbmm": lambda: torch.baddbmm(batch, batch, batch),
        "batch_norm": lambda: F.batch_norm(image, torch.zeros(16), torch.ones(16)),
        "batch_norm training": lambda: F.batch_norm(image, None, None, training=True),
        "bernoulli": lambda: torch.bernoulli(small),
        "bfloat16": line.bfloat16,
        "bincount": lambda: torch.bincount(ids),
        "bitwise_and": lambda: ids & 7,
        "bmm": lambda: torch.bmm(batch, batch),
        "bucketize": lambda: torch.bucketize(small, small[:100].sort().values),
        "cat": lambda: torch.cat([line, line]),
        "cat columns": lambda: torch.cat([square, square], 1),
        "cdist": lambda: torch.cdist(tall[:1_000], tall[:1_000]),
        "cholesky": lambda: torch.linalg.cholesky(positive),
        "clamp": lambda: line.clamp(-1, 1),
        "clone": line.clone,
        "complex multiplication": lambda: torch.view_as_complex(tall.view(-1, 2)) * 1j,
        "contiguous": square.T.contiguous,
        "conv1d grouped": lambda: F.conv1d(image.view(16, 16, -1), kernel[:, :1, 0], groups=16),
        "conv2d": lambda: F.conv2d(image, kernel),
        "conv2d strided": lambda: F.conv2d(image, kernel, stride=2),
        "conv2d backward": lambda: torch.nn.grad.conv2d_weight(image, (16, 16, 3, 3), image, padding=1),
        "conv_transpose2d": lambda: F.conv_transpose2d(image, kernel),
        "cross_entropy": lambda: F.cross_entropy(words, classes),
        "cumprod": lambda: line.cumprod(0),
        "cumsum": lambda: square.cumsum(1),
        "diag_embed": lambda: torch.diag_embed(line[:3_000]),
        "dot": lambda: torch.dot(line, line),
        "dropout": lambda: F.dropout(small),
        "eigh": lambda: torch.linalg.eigh(positive[:100, :100]),
        "einsum": lambda: torch.einsum("bij,bjk->bik", batch, batch),
        "embedding": lambda: F.embedding(ids, tall),
        "embedding_bag": lambda: F.embedding_bag(ids.view(-1, 10), tall),
        "eq": lambda: line == line,  # noqa: PLR0124
        "equal": lambda: torch.equal(line, line.clone()),
        "erf": line.erf,
        "exp": line.exp,
        "fft": lambda: torch.fft.fft(small),
        "fill_": lambda: line.new_empty(10_000_000).fill_(1.0),
        "flip": lambda: square.flip(0),
        "float64": line.double,
        "fold": lambda: F.fold(torch.ones(1, 144, 4_096), 64, 3, padding=1),
        "foreach_add": lambda: torch._foreach_add(many, 1.0),  # noqa: SLF001
        "gather": lambda: square.gather(1, whole.repeat(15, 15)),
        "gelu": lambda: F.gelu(line),
        "grid_sample": lambda: F.grid_sample(image, grid, align_corners=False),
        "group_norm": lambda: F.group_norm(image, 4),
        "histc": line.histc,
        "index_add": lambda: tall.index_add(0, ids[:50_000], tall[:50_000]),
        "index_put": lambda: tall.index_put((ids[:50_000],), tall[:50_000]),
        "index_select": lambda: tall.index_select(0, ids),
        "indexing": lambda: tall[ids],
        "interpolate": lambda: F.interpolate(image, scale_factor=2, mode="bilinear"),
        "inverse": lambda: torch.linalg.inv(positive),
        "isnan": line.isnan,
        "kthvalue": lambda: small.kthvalue(50_000),
        "layer_norm": lambda: F.layer_norm(words, (512,)),
        "lerp": lambda: torch.lerp(line, line, 0.5),
        "linear bfloat16": lambda: F.linear(half.bfloat16(), half.bfloat16()),
        "linspace": lambda: torch.linspace(0, 1, 10_000_000),
        "log_softmax": lambda: words.log_softmax(1),
        "logsumexp": lambda: words.logsumexp(1),
        "masked_fill": lambda: line.masked_fill(flags, 0.0),
        "masked_select": lambda: line.masked_select(flags),
        "matmul int64": lambda: whole @ whole,
        "matmul float64": lambda: half.double() @ half.double(),
        "max": lambda: square.max(1),
        "max_pool2d": lambda: F.max_pool2d(image, 3, 1),
        "mean": lambda: square.mean(0),
        "median": small.median,
        "mm": lambda: half @ half,
        "mse_loss": lambda: F.mse_loss(line, line),
        "multinomial": lambda: small.multinomial(1_000),
        "mv": lambda: square @ square[0],
        "nonzero": flags.nonzero,
        "norm": line.norm,
        "one_hot": lambda: F.one_hot(classes),
        "pad": lambda: F.pad(image, (2, 2, 2, 2), mode="reflect"),
        "pixel_shuffle": lambda: F.pixel_shuffle(image, 2),
        "pow": lambda: line.pow(3),
        "prod": lambda: square.prod(1),
        "qr": lambda: torch.linalg.qr(half[:, :100]),
        "quantize_per_tensor": lambda: torch.quantize_per_tensor(line, 0.1, 0, torch.quint8),
        "randn": lambda: torch.randn(1_000_000),
        "randperm": lambda: torch.randperm(1_000_000),
        "relu": line.relu,
        "repeat": lambda: small.repeat(10),
        "repeat_interleave": lambda: small.repeat_interleave(10),
        "roll": lambda: square.roll(3, 1),
        "scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(heads, heads, heads),
        "scatter_add": lambda: torch.zeros(100_000).scatter_add(0, ids[:400_000], small),
        "searchsorted": lambda: torch.searchsorted(small[:9_000].sort().values, small[:100_000]),
        "sigmoid": line.sigmoid,
        "silu": lambda: F.silu(line),
        "softmax": lambda: words.softmax(1),
        "solve": lambda: torch.linalg.solve(positive, half),
        "sort": small.sort,
        "sparse mm": lambda: sparse @ square[:, :100],
        "split, cat": lambda: torch.cat(square.split(100), 1),
        "stack": lambda: torch.stack([line, line]),
        "std": lambda: square.std(1),
        "sum": line.sum,
        "sum of rows": lambda: square.sum(1),
        "sum of columns": lambda: square.sum(0),
        "svd": lambda: torch.linalg.svd(half[:100, :100]),
        "take_along_dim": lambda: square.take_along_dim(places, 1),
        "tanh": line.tanh,
        "topk": lambda: square.topk(10),
        "trace": lambda: square.repeat(2, 2).trace(),
        "triu": square.triu,
        "unfold": lambda: F.unfold(image, 3),
        "unique": whole.unique,
        "var_mean": lambda: torch.var_mean(square, 1),
        "where": lambda: torch.where(flags, line, 0.0),
        "zeros": lambda: torch.zeros(10_000_000),
    }


CALLS: list[Call] = []


def inputs(params: Params) -> tuple[()]:
    """Nothing: every call has its own."""
    COST.open(params)
    CALLS[:] = calls().values()
    return ()


def call() -> Any:
    """The operator whose number the cell holds."""
    return CALLS[COST.cell[0]]()


SCENARIO = Scenario(
    name="laboratory_operators",
    summary="operators on much data, nearly all of it their kernel's time",
    source="aten/src/ATen/native",
    params=Params,
    inputs=inputs,
    variants={"call": call},
)
