"""Settings of the C library's malloc, by environment variables."""

from __future__ import annotations

import platform

from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy

_SOURCE = "https://sourceware.org/glibc/manual/latest/html_node/Malloc-Tunable-Parameters.html"


def _apply(call: Call) -> Call:
    if platform.libc_ver()[0] != "glibc":
        raise NotApplicableError("the C library is not glibc")
    return call


REMEDIES = (
    Remedy(
        name="malloc_keeps_pages",
        summary="malloc gives no memory back to the operating system, so that nothing faults twice",
        how="MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1",
        shrinks=("allocation",),
        source=_SOURCE,
        apply=_apply,
        group="malloc",
        variables=lambda: {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1"},
    ),
    Remedy(
        name="malloc_huge_pages",
        summary="malloc asks for transparent huge pages",
        how="GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        shrinks=("allocation", "kernel"),
        source=_SOURCE,
        apply=_apply,
        group="malloc",
        variables=lambda: {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    ),
)
