"""CUDA graphs."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


def _apply(call: Call) -> Call:
    if call.device == "cpu":
        raise NotApplicableError("CUDA graphs need a CUDA device")
    return call.compiled(mode="reduce-overhead")


REMEDY = Remedy(
    name="reduce_overhead",
    summary="all launches of the call are replayed as one CUDA graph",
    how='torch.compile(f, mode="reduce-overhead")',
    shrinks=("dispatcher", "python", "launch", "allocation"),
    source="https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
    apply=_apply,
    group="compile",
)
