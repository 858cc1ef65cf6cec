"""Generated code in C++ in place of Python."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, Remedy


def _apply(call: Call) -> Call:
    return call.with_options(cpp_wrapper=True)


REMEDY = Remedy(
    name="cpp_wrapper",
    summary="the code around the kernels is generated in C++ in place of Python",
    how='torch.compile(f, options={"cpp_wrapper": True})',
    shrinks=("python", "allocation"),
    source="https://docs.pytorch.org/tutorials/unstable/inductor_cpp_wrapper_tutorial.html",
    apply=_apply,
)
