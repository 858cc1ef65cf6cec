"""One graph, or an error."""

from __future__ import annotations

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


def _apply(call: Call) -> Call:
    if call.check_compiled().get("fullgraph"):
        raise NotApplicableError("it is already compiled with fullgraph=True")
    return call.compiled(fullgraph=True)


REMEDY = Remedy(
    name="fullgraph",
    summary="torch.compile fails where the graph would break; it shows that there is nothing to gain from breaks",
    how="torch.compile(f, fullgraph=True)",
    shrinks=("guard", "compile"),
    source="https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    apply=_apply,
)
