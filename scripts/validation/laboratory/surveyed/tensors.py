"""Elements, reductions, indexing, sorting, copies and random numbers."""

from __future__ import annotations

import torch

from . import Call, functions


def calls() -> dict[str, Call]:
    """Name to call."""
    return _elements() | _reductions() | _places() | _made()


def _elements() -> dict[str, Call]:
    line, square = torch.randn(10_000_000), torch.randn(3_000, 3_000)
    short, ids, flags = line[:2_000_000], torch.randint(100_000, (500_000,)), line > 0
    pairs = torch.randn(100_000, 16)
    whole, many = torch.randint(1, 100, (2_000_000,)), [torch.randn(1_000_000) for _ in range(10)]
    three, waves = short[:1_800_000].view(-1, 3), torch.view_as_complex(short.view(-1, 2))
    return {
        **functions(line, "abs ceil erf exp frac isnan log nan_to_num neg reciprocal rsqrt sign sqrt tanh trunc"),
        **functions(waves, "angle sgn"),
        **functions(short, "digamma erfinv i0 lgamma sin sinc tan"),
        "abs complex": waves.abs,
        "add": lambda: line + line,
        "add broadcast": lambda: square + square[0],
        "add transposed": lambda: square + square.T,
        "add bfloat16": lambda: line.bfloat16().add_(1),
        "addcdiv": lambda: torch.addcdiv(short, short, short),
        "addcmul": lambda: torch.addcmul(line, line, line),
        **functions(torch, "atan2 complex hypot isclose logaddexp xlogy", short, short),
        "bitwise_and": lambda: ids & 7,
        "bitwise_left_shift": lambda: whole << 2,
        "clamp": lambda: line.clamp(-1, 1),
        "complex multiplication": lambda: torch.view_as_complex(pairs.view(-1, 2)) * 1j,
        "copysign": lambda: line.copysign(-1.0),
        "cross": lambda: torch.linalg.cross(three, three),
        "div": lambda: line / line,
        "eq": lambda: line == line,  # noqa: PLR0124
        "exp complex": waves.exp,
        "floor_divide": lambda: whole // 7,
        "fmod": lambda: short.fmod(0.3),
        "foreach_add": lambda: torch._foreach_add(many, 1.0),  # noqa: SLF001
        "foreach_addcmul": lambda: torch._foreach_addcmul(many, many, many),  # noqa: SLF001
        "foreach_norm": lambda: torch._foreach_norm(many),  # noqa: SLF001
        "gcd": lambda: torch.gcd(whole, whole.flip(0)),
        **functions(torch, "heaviside maximum nextafter", line, line),
        "lerp": lambda: torch.lerp(line, line, 0.5),
        "logical_and": lambda: flags.logical_and(flags),
        "logit": lambda: short.logit(1e-6),
        "masked_fill": lambda: line.masked_fill(flags, 0.0),
        "mul int64": lambda: whole * whole,
        "polygamma": lambda: short[:200_000].polygamma(2),
        "pow": lambda: line.pow(3),
        "pow tensor": lambda: short.pow(short),
        "remainder": lambda: whole % 7,
        "round": lambda: line.round(decimals=2),
        "rsub": lambda: 1 - line,
        "where": lambda: torch.where(flags, line, 0.0),
        "zeta": lambda: torch.special.zeta(short[:200_000].abs() + 1, 2.0),
    }


def _reductions() -> dict[str, Call]:
    line, square, small = torch.randn(10_000_000), torch.randn(3_000, 3_000), torch.rand(400_000)
    flags, whole = line > 0, torch.randint(100, (200, 200))
    ids, tall = torch.randint(100_000, (500_000,)), torch.randn(100_000, 16)
    holes = torch.where(line > 2, torch.nan, line)
    lengths = torch.full((1_000,), 100)
    return {
        "all": flags.all,
        **functions(line, "aminmax count_nonzero diff histc norm sum"),
        "median": small.median,
        **functions(holes, "nanmean nansum"),
        "all rows": lambda: (square > 9).any(1),
        **functions(square, "amax mean", 0),
        "any": (~flags).any,
        **functions(square, "argmax cummax cumsum logsumexp max prod std", 1),
        "bincount": lambda: torch.bincount(ids),
        "cumprod": lambda: line.cumprod(0),
        "dist": lambda: torch.dist(line, line),
        "equal": lambda: torch.equal(line, line.clone()),
        "histogram": lambda: torch.histogram(small, 100),
        "logcumsumexp": lambda: square[:300].logcumsumexp(1),
        "max of all": line.max,
        "median of rows": lambda: square[:300].median(1),
        "min of all": line.min,
        "mode": lambda: whole.mode(1),
        "nanmedian": holes[:400_000].nanmedian,
        "norm of rows": lambda: torch.linalg.vector_norm(square, 3, dim=1),
        "quantile": lambda: small.quantile(0.3),
        "scatter_reduce": lambda: torch.zeros(100_000).scatter_reduce(0, ids[:400_000], small, "amax"),
        "segment_reduce": lambda: torch.segment_reduce(tall, "sum", lengths=lengths, axis=0),
        "sum bfloat16": line.bfloat16().sum,
        "sum float64": line[:2_000_000].double().sum,
        "sum int64": ids.repeat(4).sum,
        "sum of rows": lambda: square.sum(1),
        "sum of columns": lambda: square.sum(0),
        "trace": lambda: square.repeat(2, 2).trace(),
        "trapezoid": lambda: torch.trapezoid(line),
        "var_mean": lambda: torch.var_mean(square, 1),
    }


def _places() -> dict[str, Call]:
    line, square, small = torch.randn(10_000_000), torch.randn(3_000, 3_000), torch.rand(400_000)
    flags, whole = line > 0, torch.randint(100, (200, 200))
    ids, tall = torch.randint(100_000, (500_000,)), torch.randn(100_000, 16)
    places = square[:100].argsort(1).repeat(30, 1)
    rows = ids[:50_000]
    return {
        **functions(small, "argsort sort"),
        "nonzero": flags.nonzero,
        **functions(square, "rot90 triu"),
        "unique": whole.unique,
        "unique_consecutive": ids.unique_consecutive,
        "bucketize": lambda: torch.bucketize(small, small[:100].sort().values),
        **functions(torch, "cat stack", [line, line]),
        "cat columns": lambda: torch.cat([square, square], 1),
        "diag_embed": lambda: torch.diag_embed(line[:3_000]),
        "flip": lambda: square.flip(0),
        "gather": lambda: square.gather(1, whole.repeat(15, 15)),
        **functions(tall, "index_add index_copy", 0, rows, tall[:50_000]),
        "index_fill": lambda: tall.index_fill(0, rows, 0.0),
        "index_put": lambda: tall.index_put((rows,), tall[:50_000]),
        "index_put accumulating": lambda: tall.index_put((rows,), tall[:50_000], accumulate=True),
        "index_reduce": lambda: tall.index_reduce(0, rows, tall[:50_000], "amax"),
        "index_select": lambda: tall.index_select(0, ids),
        "index_select columns": lambda: tall.index_select(1, whole[0] % 16),
        "indexing": lambda: tall[ids],
        "indexing by a mask": lambda: line[flags],
        "isin": lambda: torch.isin(ids, whole.view(-1)),
        "kthvalue": lambda: small.kthvalue(50_000),
        "masked_scatter": lambda: line.masked_scatter(flags, line),
        "masked_select": lambda: line.masked_select(flags),
        "meshgrid": lambda: torch.cartesian_prod(line[:1_500], line[:1_500]),
        "put": lambda: line.put(ids, small[0].expand(500_000)),
        **functions(small, "repeat repeat_interleave", 10),
        "roll": lambda: square.roll(3, 1),
        "scatter": lambda: torch.zeros(100_000).scatter(0, ids[:400_000], small),
        "scatter a value": lambda: torch.zeros(100_000).scatter(0, ids, 1.0),
        "scatter_add": lambda: torch.zeros(100_000).scatter_add(0, ids[:400_000], small),
        "scatter_add rows": lambda: tall.scatter_add(0, rows[:, None].expand(-1, 16), tall[:50_000]),
        "searchsorted": lambda: torch.searchsorted(small[:9_000].sort().values, small[:100_000]),
        "sort columns": lambda: square[:300].sort(0),
        "sort int64, stable": lambda: ids.sort(stable=True),
        "split, cat": lambda: torch.cat(square.split(100), 1),
        "stack last": lambda: torch.stack([line, line], -1),
        "take": lambda: line.take(ids),
        "take_along_dim": lambda: square.take_along_dim(places, 1),
        "topk": lambda: square.topk(10),
        "topk of all": lambda: small.topk(1_000),
        "tril_indices": lambda: torch.tril_indices(1_500, 1_500),
        "unfold a dimension": lambda: small.unfold(0, 20, 1).clone(),
    }


def _made() -> dict[str, Call]:
    line, square, small = torch.randn(10_000_000), torch.randn(3_000, 3_000), torch.rand(400_000)
    image = torch.randn(16, 16, 128, 128)
    return {
        **functions(line, "bfloat16 bool clone"),
        **functions(torch, "arange zeros", 10_000_000),
        **functions(torch, "bernoulli poisson", small),
        "bernoulli_": lambda: small.bernoulli_(0.3),
        "binomial": lambda: torch.binomial(small[:100_000] * 100, small[:100_000]),
        **functions(line[:1_000_000], "cauchy_ exponential_ log_normal_ uniform_"),
        "channels_last": lambda: image.contiguous(memory_format=torch.channels_last),
        "contiguous": square.T.contiguous,
        "copy_ permuted": lambda: image.permute(3, 0, 2, 1).contiguous(),
        "eye": lambda: torch.eye(2_000),
        "fill_": lambda: line.new_empty(10_000_000).fill_(1.0),
        "float16": line.half,
        "float64": line.double,
        "full": lambda: torch.full((10_000_000,), 2.0),
        "geometric_": lambda: line[:1_000_000].geometric_(0.3),
        "int64": line.long,
        "linspace": lambda: torch.linspace(0, 1, 10_000_000),
        "logspace": lambda: torch.logspace(0, 1, 1_000_000),
        "multinomial": lambda: small.multinomial(1_000),
        "multinomial, replaced": lambda: small[:10_000].multinomial(10_000, replacement=True),
        "normal": lambda: torch.normal(small, small),
        "quantize_per_channel": lambda: torch.quantize_per_channel(
            square, torch.full((3_000,), 0.1), torch.zeros(3_000), 0, torch.quint8
        ),
        "quantize_per_tensor": lambda: torch.quantize_per_tensor(line, 0.1, 0, torch.quint8),
        "dequantize": torch.quantize_per_tensor(line, 0.1, 0, torch.quint8).dequantize,
        "fake_quantize": lambda: torch.fake_quantize_per_tensor_affine(line, 0.1, 0, 0, 255),
        "randint": lambda: torch.randint(100, (1_000_000,)),
        **functions(torch, "randn randperm", 1_000_000),
        "randn float64": lambda: torch.randn(1_000_000, dtype=torch.float64),
    }
