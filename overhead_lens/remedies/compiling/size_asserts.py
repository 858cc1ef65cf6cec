"""Inductor's checks of sizes and strides."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, Remedy


def _apply(call: Call) -> Call:
    return call.with_options(size_asserts=False)


REMEDY = Remedy(
    name="size_asserts_off",
    summary="generated code does not check the sizes and strides of what it is given and what operators return",
    how='torch.compile(f, options={"size_asserts": False}), or TORCHINDUCTOR_SIZE_ASSERTS=0',
    safety="changes_semantics",
    shrinks=("python", "guard"),
    source="https://github.com/pytorch/pytorch/blob/main/torch/_inductor/config.py",
    apply=_apply,
)
