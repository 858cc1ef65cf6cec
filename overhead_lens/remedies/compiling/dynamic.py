"""Sizes that are known, or left open, whatever sizes come."""

from __future__ import annotations

from functools import partial

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


def _apply(call: Call, *, dynamic: bool) -> Call:
    if call.check_compiled().get("dynamic") is dynamic:
        raise NotApplicableError(f"it is compiled with dynamic={dynamic}")
    return call.compiled(dynamic=dynamic)


REMEDIES = tuple(
    Remedy(
        name=f"dynamic_{'on' if dynamic else 'off'}",
        summary="code for any size" if dynamic else "code for the very sizes that come, compiled again for others",
        how=f"torch.compile(f, dynamic={dynamic})",
        shrinks=("guard", "python", "kernel", "compile"),
        source="https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html",
        apply=partial(_apply, dynamic=dynamic),
        group="dynamic",
    )
    for dynamic in (False, True)
)
