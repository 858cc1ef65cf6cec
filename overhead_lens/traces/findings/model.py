"""Possible savings in a trace, each with an upper bound: frozen values. Durations are integer ns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from overhead_lens.errors import require

CAUSE_SHARE = 0.25
"""What bounds less of the recording is not called its cause."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Events of one name that support a finding; ``ns`` is the sum of their durations, or of the pieces that count.

    Attributes:
        module: Module around the longest of them; empty if the trace names none.
        line: Python function outside of torch around the longest of them; empty if the trace does not tell.
    """

    name: str
    count: int
    ns: int
    module: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A possible saving with its upper bound. Findings overlap: their bounds must not be added up.

    Attributes:
        id: Stable identifier.
        category: What the time is now, a category of the host, of blame, or a kind of device work.
        device: Number of the device as text; empty if it is about the host.
        summary: What was found, in a sentence without figures.
        bound_ns: What a remedy can save at most.
        evidence: The largest first, thinned.
        line: Python function outside of torch around the largest piece; empty if the trace does not tell.
        remedy: What to try, in a sentence.
        kind: ``bound``: nothing was tried. ``measured`` is what ``advise`` says.
        share: The bound, of the window.
        sentence: The finding in a sentence: how long, led by what, where.
        module: Module around the largest piece; empty if the trace names none.
        overlaps: ``label`` of every finding of the trace whose time overlaps with its own.
    """

    id: str
    category: str
    device: str
    summary: str
    bound_ns: int
    evidence: tuple[Evidence, ...]
    line: str
    remedy: str
    kind: Literal["bound", "measured"] = "bound"
    share: float = 0.0
    sentence: str = ""
    module: str = ""
    overlaps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(self.bound_ns > 0, f"finding {self.id} saves nothing")

    @property
    def label(self) -> str:
        """Its identifier, with the device that it is about."""
        return f"{self.id} (device {self.device})" if self.device else self.id
