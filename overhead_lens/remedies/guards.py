"""Fewer guards before a compiled call, at the user's risk: filters, tags of whole module trees, no evaluation."""

from __future__ import annotations

from functools import partial

from overhead_lens.remedies.remedy import Call, Remedy, refuse

_SOURCE = "https://docs.pytorch.org/docs/stable/compile/programming_model.reducing_guard_overhead.html"

# The ready filters of torch.compiler.
_SPARED = {
    "skip_all_guards_unsafe": ("guard_filter_all", "no guard is checked"),
    "skip_guard_on_inbuilt_nn_modules_unsafe": (
        "guard_filter_inbuilt_modules",
        "guards on modules of torch.nn are not checked",
    ),
    "skip_guard_on_all_nn_modules_unsafe": ("guard_filter_modules", "guards on modules are not checked"),
    "keep_tensor_guards_unsafe": ("guard_filter_but_tensors", "only guards on tensors are checked"),
    "skip_guard_on_globals_unsafe": ("guard_filter_globals", "guards on globals are not checked"),
    "keep_portable_guards_unsafe": ("guard_filter_not_portable", "guards that cannot be stored are not checked"),
}


def _filtered(call: Call, filter_name: str) -> Call:
    import torch

    call.check_compiled()
    refuse(not hasattr(torch.compiler, filter_name), f"this torch has no torch.compiler.{filter_name}")
    return call.with_options(guard_filter_fn=getattr(torch.compiler, filter_name))


def _configured(call: Call, setting: str) -> Call:
    from torch._dynamo import config

    call.check_compiled()
    refuse(not hasattr(config, setting), f"this torch has no torch._dynamo.config.{setting}")
    refuse(getattr(config, setting), "it is on")
    return call.inside(partial(config.patch, **{setting: True}))


def _not_evaluated(call: Call) -> Call:
    import torch

    call.check_compiled()
    return call.later_inside(partial(torch.compiler.set_stance, "default", skip_guard_eval_unsafe=True))


_remedy = partial(Remedy, shrinks=("guard",), source=_SOURCE)

REMEDIES = (
    *(
        _remedy(
            name=name,
            summary=summary,
            how=f'torch.compile(f, options={{"guard_filter_fn": torch.compiler.{filter_name}}})',
            safety="unsafe",
            apply=partial(_filtered, filter_name=filter_name),
            group="guards",
        )
        for filter_name, (name, summary) in _SPARED.items()
    ),
    _remedy(
        name="recursive_dict_tags",
        summary="a tag for each tree of modules is compared first",
        how="torch._dynamo.config.use_recursive_dict_tags_for_guards = True",
        apply=partial(_configured, setting="use_recursive_dict_tags_for_guards"),
    ),
    _remedy(
        name="free_tensors",
        summary="tensors of modules become inputs of the graph without guards",
        how="torch._dynamo.config.install_free_tensors = True",
        safety="unsafe",
        apply=partial(_configured, setting="install_free_tensors"),
    ),
    _remedy(
        name="skip_guard_eval",
        summary="only guards that tell compiled versions apart are checked",
        how='torch.compiler.set_stance("default", skip_guard_eval_unsafe=True)',
        safety="unsafe",
        source="https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html",
        apply=_not_evaluated,
        group="guards",
    ),
)
