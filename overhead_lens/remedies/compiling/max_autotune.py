"""Kernels chosen by trying."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, Remedy


def _apply(call: Call) -> Call:
    return call.compiled(mode="max-autotune-no-cudagraphs")


REMEDY = Remedy(
    name="max_autotune",
    summary="the compiler tries kernels for matrix products and keeps the fastest",
    how='torch.compile(f, mode="max-autotune-no-cudagraphs")',
    shrinks=("kernel",),
    source="https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    apply=_apply,
    group="compile",
)
