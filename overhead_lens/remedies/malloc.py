"""Settings of the C library's malloc, and another malloc where one is installed: by environment variables."""

from __future__ import annotations

import os
import platform
from ctypes.util import find_library
from functools import partial

from overhead_lens.remedies.remedy import Call, Remedy, refuse

_SOURCE = "https://sourceware.org/glibc/manual/latest/html_node/Malloc-Tunable-Parameters.html"


def _with_glibc(call: Call) -> Call:
    refuse(platform.libc_ver()[0] != "glibc", "the C library is not glibc")
    return call


def _with_library(call: Call, library: str) -> Call:
    refuse(find_library(library) is None, f"{library} is not installed")
    return call


def _preloading(library: str) -> dict[str, str]:
    return {"LD_PRELOAD": _joined(find_library(library), os.environ.get("LD_PRELOAD"))}


def _joined(*parts: str | None) -> str:
    return ":".join(filter(None, parts))


_remedy = partial(Remedy, shrinks=("allocation",), source=_SOURCE, apply=_with_glibc, group="malloc")

REMEDIES = (
    _remedy(
        name="malloc_keeps_pages",
        summary="malloc gives no memory back to the operating system, so that nothing faults twice",
        how="MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1",
        variables=lambda: {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"},
    ),
    _remedy(
        name="malloc_huge_pages",
        summary="malloc asks for transparent huge pages",
        how="GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        shrinks=("allocation", "kernel"),
        variables=lambda: {"GLIBC_TUNABLES": _joined(os.environ.get("GLIBC_TUNABLES"), "glibc.malloc.hugetlb=1")},
    ),
    *(
        _remedy(
            name=name,
            summary=f"{name} in place of the C library's malloc",
            how=f"LD_PRELOAD=lib{library}.so.{version}",
            source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
            apply=partial(_with_library, library=library),
            variables=partial(_preloading, library),
        )
        for name, library, version in (("jemalloc", "jemalloc", 2), ("tcmalloc", "tcmalloc_minimal", 4))
    ),
)
