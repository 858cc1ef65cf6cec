"""One tag per dict of a module tree in place of a guard per module."""

from __future__ import annotations

from collections.abc import Callable

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy, Safety

_SAFE: Safety = "safe"
_UNSAFE: Safety = "unsafe"


def _setting(name: str) -> Callable[[Call], Call]:
    def apply(call: Call) -> Call:
        from torch._dynamo import config

        call.check_compiled()
        if not hasattr(config, name):
            raise NotApplicableError(f"this torch has no torch._dynamo.config.{name}")
        if getattr(config, name):
            raise NotApplicableError("it is on")
        return call.inside(lambda: config.patch(**{name: True}))

    return apply


REMEDIES = tuple(
    Remedy(
        name=name,
        summary=summary,
        how=f"torch._dynamo.config.{setting} = True",
        safety=safety,
        shrinks=("guard",),
        source="https://docs.pytorch.org/docs/stable/compile/programming_model.reducing_guard_overhead.html",
        apply=_setting(setting),
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
