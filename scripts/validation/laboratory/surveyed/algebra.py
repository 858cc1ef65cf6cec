"""Products, decompositions, Fourier transforms, sparse and quantized matrices."""

from __future__ import annotations

import torch

from . import Call, functions


def calls() -> dict[str, Call]:
    """Name to call."""
    return _products() | _decompositions() | _sparse()


def _products() -> dict[str, Call]:
    line, square, half = torch.randn(10_000_000), torch.randn(3_000, 3_000), torch.randn(500, 500)
    batch, whole, tall = torch.randn(256, 64, 64), torch.randint(100, (200, 200)), torch.randn(100_000, 16)
    waves, small = torch.view_as_complex(torch.randn(400, 400, 2)), torch.rand(400_000)
    window, text = torch.hann_window(512), torch.randn(200_000)
    frames = torch.stft(text, 512, window=window, return_complex=True)
    return {
        "addbmm": lambda: torch.addbmm(batch[0], batch, batch),
        "addmm": lambda: torch.addmm(half, half, half),
        "addmv": lambda: torch.addmv(square[0], square, square[0]),
        "addr": lambda: torch.addr(square, square[0], square[0]),
        "baddbmm": lambda: torch.baddbmm(batch, batch, batch),
        "bmm": lambda: torch.bmm(batch, batch),
        "bmm bfloat16": lambda: torch.bmm(batch.bfloat16(), batch.bfloat16()),
        "bmm int64": lambda: torch.bmm(whole[None], whole[None]),
        "bmm small": lambda: torch.bmm(tall.view(-1, 4, 4), tall.view(-1, 4, 4)),
        "cdist": lambda: torch.cdist(tall[:1_000], tall[:1_000]),
        "cdist p=1": lambda: torch.cdist(tall[:1_000], tall[:1_000], p=1),
        "chain_matmul": lambda: torch.linalg.multi_dot([half, half, half]),
        "dot": lambda: torch.dot(line, line),
        "dot bfloat16": lambda: torch.dot(line.bfloat16(), line.bfloat16()),
        "einsum": lambda: torch.einsum("bij,bjk->bik", batch, batch),
        **functions(torch.fft, "fft rfft", small),
        **functions(torch.fft, "fft2 ifft irfft", waves),
        "fftshift": lambda: torch.fft.fftshift(square),
        "istft": lambda: torch.istft(frames, 512, window=window),
        "kron": lambda: torch.kron(half[:100, :100], half[:20, :20]),
        "matmul complex": lambda: waves @ waves,
        "matmul float16": lambda: half.half() @ half.half(),
        "matmul float64": lambda: half.double() @ half.double(),
        "matmul int64": lambda: whole @ whole,
        "mm": lambda: half @ half,
        "mv": lambda: square @ square[0],
        "mv bfloat16": lambda: square.bfloat16() @ square[0].bfloat16(),
        "outer": lambda: torch.outer(square[0], square[0]),
        "pdist": lambda: torch.pdist(tall[:1_000]),
        "renorm": lambda: tall.renorm(2, 0, 1.0),
        "stft": lambda: torch.stft(text, 512, window=window, return_complex=True),
        "tensordot": lambda: torch.tensordot(batch, batch, ([1, 2], [1, 2])),
        "vander": lambda: torch.linalg.vander(square[0], N=500),
        "vdot": lambda: torch.vdot(torch.view_as_complex(line.view(-1, 2)), torch.view_as_complex(line.view(-1, 2))),
    }


def _decompositions() -> dict[str, Call]:
    half, batch = torch.randn(500, 500), torch.randn(256, 32, 32)
    positive = half @ half.T + 500 * torch.eye(500)
    factor = torch.linalg.cholesky(positive)
    packed, pivots = torch.linalg.lu_factor(positive)
    return {
        **functions(torch.linalg, "cholesky det ldl_factor lu slogdet", positive),
        **functions(torch.linalg, "cond eig matrix_rank pinv svd svdvals", half[:100, :100]),
        **functions(torch.linalg, "eigh eigvalsh", positive[:100, :100]),
        "lstsq": lambda: torch.linalg.lstsq(half[:, :100], half),
        "lu_solve": lambda: torch.linalg.lu_solve(packed, pivots, half),
        "matrix_power": lambda: torch.linalg.matrix_power(half, 5),
        "qr": lambda: torch.linalg.qr(half[:, :100]),
        "solve": lambda: torch.linalg.solve(positive, half),
        "solve_triangular": lambda: torch.linalg.solve_triangular(factor, half, upper=False),
        "cholesky_inverse": lambda: torch.cholesky_inverse(factor),
        "cholesky_solve": lambda: torch.cholesky_solve(half, factor),
        "inverse": lambda: torch.linalg.inv(positive),
        "inverse of a batch": lambda: torch.linalg.inv(batch),
        "matrix_exp": lambda: torch.matrix_exp(half[:200, :200]),
        "ormqr": lambda: torch.ormqr(half[:, :100], half[0, :100], half),
    }


def _sparse() -> dict[str, Call]:
    square = torch.randn(3_000, 3_000)
    dense = square * (square > 1.5)
    rows, listed, columns = dense.to_sparse_csr(), dense.to_sparse().coalesce(), dense.to_sparse_csc()
    few, blocks = dense[:400, :400].to_sparse().coalesce(), dense.to_sparse_bsr((10, 10))
    loose = torch.sparse_coo_tensor(torch.randint(1_000, (2, 300_000)), torch.ones(300_000), (1_000, 1_000))
    thin = square[:, :100].contiguous()
    quantized = torch.quantize_per_tensor(square, 0.1, 0, torch.quint8)
    return {
        "sparse add": lambda: listed + listed,
        "sparse addmm": lambda: torch.sparse.addmm(thin, listed, thin),
        "sparse bsr mm": lambda: blocks @ thin,
        "sparse coalesce": loose.coalesce,
        "sparse csc mm": lambda: columns @ thin,
        "sparse csr mv": lambda: rows @ square[0],
        "sparse csr to dense": rows.to_dense,
        "sparse mask": lambda: square.sparse_mask(listed),
        "sparse mm": lambda: rows @ thin,
        "sparse mul": lambda: listed * listed,
        "sparse softmax": lambda: torch.sparse.softmax(listed, 1),
        "sparse sparse mm": lambda: torch.sparse.mm(few, few),
        "sparse sum": lambda: torch.sparse.sum(listed, 0),
        "sparse to dense": listed.to_dense,
        "sparse transpose": lambda: listed.t().coalesce(),
        "to sparse": dense.to_sparse,
        "to sparse csr": dense.to_sparse_csr,
        "quantized relu": lambda: torch.relu(quantized),
        "quantized cat": lambda: torch.ops.quantized.cat([quantized, quantized], 0, 0.1, 0),
        "quantized add": lambda: torch.ops.quantized.add(quantized, quantized, 0.2, 0),
        "quantized mul": lambda: torch.ops.quantized.mul(quantized, quantized, 0.2, 0),
    }
