"""The garbage collector runs a hundred times as rarely."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from overhead_lens.remedies.remedy import Call, Remedy, refuse


@contextmanager
def _rarely() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(100 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _apply(call: Call) -> Call:
    refuse(not gc.isenabled(), "the garbage collector is off")
    return call.inside(_rarely)


REMEDY = Remedy(
    name="gc_rarely",
    summary="the garbage collector looks for cycles a hundred times as rarely",
    how="gc.freeze(); gc.set_threshold(100 * gc.get_threshold()[0])",
    shrinks=("python",),
    source="https://docs.python.org/3/library/gc.html#gc.set_threshold",
    apply=_apply,
    group="garbage",
    own_process=True,
)
