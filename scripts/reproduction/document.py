"""The document: every part in its order, and what all profiled calls say of the corrected trace."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.reproduction import add1, fusion, loops, peers, sums
from scripts.reproduction.outcomes import Measured, Part
from scripts.reproduction.peers import render_residuals
from scripts.reproduction.storing import Stored

PARTS: tuple[Part, ...] = (*add1.PARTS, *loops.PARTS, *sums.PARTS, *fusion.PARTS, *peers.PARTS)


INTRODUCTION = """\
# Published figures, measured again

Written by `python scripts/reproduce.py`; the figures of this text are in `docs/reproduction/`. Each is of fresh
processes: the median over processes of their median block, with a 95 % interval from a bootstrap over processes (of
figures stored by an earlier version, over their blocks as well, which is a little wider). Published figures are of
other hardware and mostly of older versions: a ratio is no pass mark. The sentences below a table are made from its
measured numbers; shares are those of the closed budget that `overhead-lens profile` prints. "X over Y" in a table of
ratios says how many times as fast X is.

"Disturbed" are figures whose interval spans more than a factor of two, as when the machine does other work as well and calls
that use all its cores wait for it. No fit and no count is made of them.
"""


def document_text(stored: Mapping[str, Stored]) -> str:
    """The whole document."""
    machines = sorted({name for each in stored.values() for name in each.machines})
    lines = [INTRODUCTION, *(f"Measured on: {name}." for name in machines), ""]
    profiled: dict[str, Measured] = {}
    for part in PARTS:
        outcomes = stored[part.name].outcomes
        lines += [f"## {part.title}", "", *part.render(outcomes)]
        for name, outcome in outcomes.items():
            if isinstance(outcome, Measured) and outcome.host_ns:
                profiled[f"{part.name}, {name.split('/')[1]}"] = outcome
    return "\n".join([*lines, *render_residuals(profiled)]).rstrip("\n") + "\n"
