"""Another malloc, where one is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes.util import find_library
from functools import partial

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy


def _apply(call: Call, library: str) -> Call:
    if find_library(library) is None:
        raise NotApplicableError(f"{library} is not installed")
    return call


def _variables(library: str) -> Callable[[], Mapping[str, str]]:
    def variables() -> Mapping[str, str]:
        found = find_library(library)
        return {"LD_PRELOAD": found or ""}

    return variables


REMEDIES = tuple(
    Remedy(
        name=name,
        summary=f"{name} in place of the C library's malloc",
        how=f"LD_PRELOAD=lib{library}.so",
        shrinks=("allocation",),
        source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        apply=partial(_apply, library=library),
        group="malloc",
        variables=_variables(library),
    )
    for name, library in (("jemalloc", "jemalloc"), ("tcmalloc", "tcmalloc_minimal"))
)
