"""What a program spent its whole time on (pure): imports, compilations, warm-up, steps, and all else.

::

    |--------- set-up ---------|--- warm-up ---|------------- steps -------------|-- rest --|
      import   compile                compile       compile

Compilations are timed by the compiler's own callbacks, wherever they fall. Imports take the share of the remaining set-up that
they have among the stacks outside compilations. The clock gives the other phases, which hold the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np

from overhead_lens.stack import Stack
from overhead_lens.studies.run.stored import StoredRun
from overhead_lens.traces.intervals import Union, union

PhaseName = Literal["import", "compile", "warm_up", "steps", "other"]

_IMPORTING = "<frozen importlib._bootstrap"


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """A phase of the whole run; the phases sum to its wall time."""

    name: PhaseName
    wall_ns: int


def phases(run: StoredRun, set_up: Sequence[Stack], *, has_steps: bool) -> tuple[PhaseTime, ...]:
    """The phases of a run; they sum to its wall. ``set_up``: the main thread's stacks before the steps, without compilations."""
    meta = run.meta
    begin_ns, end_ns = meta.begun_ns, meta.begun_ns + meta.wall_ns
    if not begin_ns:
        return (PhaseTime("other", meta.wall_ns),)
    spans = np.array([(each.begin_ns, each.end_ns) for each in meta.compilations], dtype=np.int64).reshape(-1, 2)
    spans = spans.clip(begin_ns, end_ns)
    compiling = union(spans[:, 0], spans[:, 1] - spans[:, 0])
    moments = (begin_ns, end_ns, end_ns, end_ns)
    if has_steps and meta.first_ns and run.steps is not None:
        last_ns = meta.last_ns or int(run.steps["end_ns"].iloc[-1])
        moments = (begin_ns, meta.first_ns, meta.settled_ns or last_ns, last_ns)
    # They are noted one after the other, by a program that may end in between.
    _, first_ns, settled_ns, last_ns = (min(moment, end_ns) for moment in accumulate(moments, max))
    set_up_ns = _left(compiling, begin_ns, first_ns)
    # Its stacks end where the sampler's turns begin, perhaps those of earlier steps.
    seen_ns = min(first_ns, meta.sampled_ns) if has_steps and meta.sampled_ns else first_ns
    import_ns = round(_import_share(set_up) * _left(compiling, begin_ns, seen_ns))
    times: dict[PhaseName, int] = {
        "import": import_ns,
        "compile": compiling.total_ns,
        "warm_up": _left(compiling, first_ns, settled_ns),
        "steps": _left(compiling, settled_ns, last_ns),
        "other": set_up_ns - import_ns + _left(compiling, last_ns, end_ns),
    }
    return tuple(PhaseTime(name, ns) for name, ns in times.items() if ns)


def _import_share(stacks: Sequence[Stack]) -> float:
    importing = sum(
        stack.count for stack in stacks if any(frame.location.startswith(_IMPORTING) for frame in stack.frames)
    )
    return importing / (sum(stack.count for stack in stacks) or 1)


def _left(compiling: Union, begin_ns: int, end_ns: int) -> int:
    """Time between two instants, less what is compiled meanwhile."""
    return end_ns - begin_ns - compiling.within((begin_ns, end_ns))
