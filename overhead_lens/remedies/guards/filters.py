"""The ready guard filters of torch.compiler: fewer guards, at the user's risk."""

from __future__ import annotations

from functools import partial

from overhead_lens.remedies.remedy import Call, Remedy, refuse

_SPARED = {
    "skip_all_guards_unsafe": ("guard_filter_all", "all guards"),
    "skip_guard_on_inbuilt_nn_modules_unsafe": ("guard_filter_inbuilt_modules", "guards on modules of torch.nn"),
    "skip_guard_on_all_nn_modules_unsafe": ("guard_filter_modules", "guards on modules"),
    "keep_tensor_guards_unsafe": ("guard_filter_but_tensors", "all guards but those on tensors"),
    "skip_guard_on_globals_unsafe": ("guard_filter_globals", "guards on globals"),
    "keep_portable_guards_unsafe": ("guard_filter_not_portable", "guards that cannot be stored"),
}


def _apply(call: Call, filter_name: str) -> Call:
    import torch

    call.check_compiled()
    refuse(not hasattr(torch.compiler, filter_name), f"this torch has no torch.compiler.{filter_name}")
    return call.with_options(guard_filter_fn=getattr(torch.compiler, filter_name))


REMEDIES = tuple(
    Remedy(
        name=name,
        summary=f"{what} are not checked",
        how=f'torch.compile(f, options={{"guard_filter_fn": torch.compiler.{filter_name}}})',
        safety="unsafe",
        shrinks=("guard",),
        source="https://docs.pytorch.org/docs/stable/compile/programming_model.reducing_guard_overhead.html",
        apply=partial(_apply, filter_name=filter_name),
        group="guards",
    )
    for filter_name, (name, what) in _SPARED.items()
)
