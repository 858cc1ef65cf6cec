"""Guards are not evaluated where one compiled version is enough."""

from __future__ import annotations

from functools import partial

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy, refuse


def _apply(call: Call) -> Call:
    import torch

    call.check_compiled()
    refuse(not hasattr(torch.compiler, "set_stance"), "this torch has no torch.compiler.set_stance")
    try:
        torch.compiler.set_stance("default", skip_guard_eval_unsafe=False).__exit__(None, None, None)
    except TypeError:
        raise NotApplicableError("this torch's set_stance has no skip_guard_eval_unsafe") from None
    return call.later_inside(partial(torch.compiler.set_stance, "default", skip_guard_eval_unsafe=True))


REMEDY = Remedy(
    name="skip_guard_eval",
    summary="only guards that tell compiled versions apart are checked",
    how='torch.compiler.set_stance("default", skip_guard_eval_unsafe=True)',
    safety="unsafe",
    shrinks=("guard",),
    source="https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html",
    apply=_apply,
    group="guards",
)
