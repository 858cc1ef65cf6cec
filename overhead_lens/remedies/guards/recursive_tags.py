"""One tag per dict of a module tree in place of a guard per module."""

from __future__ import annotations

from functools import partial

from overhead_lens.remedies.remedy import Call, Remedy, Safety, refuse

_SAFE: Safety = "safe"
_UNSAFE: Safety = "unsafe"


def _apply(call: Call, setting: str) -> Call:
    from torch._dynamo import config

    call.check_compiled()
    refuse(not hasattr(config, setting), f"this torch has no torch._dynamo.config.{setting}")
    refuse(getattr(config, setting), "it is on")
    return call.inside(partial(config.patch, **{setting: True}))


REMEDIES = tuple(
    Remedy(
        name=name,
        summary=summary,
        how=f"torch._dynamo.config.{setting} = True",
        safety=safety,
        shrinks=("guard",),
        source="https://docs.pytorch.org/docs/stable/compile/programming_model.reducing_guard_overhead.html",
        apply=partial(_apply, setting=setting),
    )
    for name, setting, summary, safety in (
        (
            "recursive_dict_tags",
            "use_recursive_dict_tags_for_guards",
            "a tag for each tree of modules is compared first",
            _SAFE,
        ),
        (
            "free_tensors",
            "install_free_tensors",
            "tensors of modules become inputs of the graph without guards",
            _UNSAFE,
        ),
    )
)
