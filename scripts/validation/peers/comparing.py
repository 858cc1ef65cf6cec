"""Two figures of one quantity of one trace, equal, or different for proven reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scripts.validation.peers.figures import Between, Figure

EQUAL, EXPLAINED, UNEXPLAINED, FAILED, NOTHING = "equal", "explained", "unexplained", "failed", "nothing"

_RELATIVE = 1e-12


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a comparison.

    Attributes:
        status: ``equal``, ``explained``, ``unexplained``, ``failed`` (the peer said an error) or ``nothing`` (both have none).
        ours, theirs: Both figures; None where there is none.
        reasons: The readings that make ours theirs; what is wrong where it is unexplained or failed.
    """

    status: str
    ours: Figure
    theirs: Figure
    reasons: tuple[str, ...] = ()


def compared(
    ours: Figure,
    theirs: Figure,
    figure: Callable[[tuple[str, ...]], Figure],
    readings: Sequence[str],
    *,
    rounding: float,
    exact: float,
) -> Verdict:
    """Compare both, and prove by a set of readings, of which none can be left out, what they differ by.

    Args:
        ours, theirs: Of a mapping only the names that ours has are compared.
        figure: The quantity by plain code under some readings.
        readings: All in which the peer may differ; under all of them the plain figure must be the peer's exactly.
        rounding: What the peer's last digit may hide.
        exact: By how much a figure that is read as the peer does may still be off: what its floating point may.
    """
    if not is_same(figure(()), ours, 0.0, ours):
        return Verdict(UNEXPLAINED, ours, theirs, (f"plain code says {figure(())}",))
    if not ours and not theirs:
        return Verdict(NOTHING, ours, theirs)
    if is_same(ours, theirs, rounding, ours):
        return Verdict(EQUAL, ours, theirs)
    if not is_same(figure(tuple(readings)), theirs, exact, ours):
        return Verdict(
            UNEXPLAINED,
            ours,
            theirs,
            (f"read as the peer does: {_picked(figure(tuple(readings)), theirs, ours, exact)}",),
        )
    needed = tuple(readings)
    for reading in readings:
        fewer = tuple(each for each in needed if each != reading)
        if is_same(figure(fewer), theirs, max(rounding, exact), ours):
            needed = fewer
    if not needed:
        raise ValueError("a difference that is none")
    return Verdict(EXPLAINED, ours, theirs, needed)


def is_same(one: Figure, other: Figure, within: float, names: Figure) -> bool:
    """Whether two figures are equal within some amount; of mappings those of ``names``."""
    if isinstance(names, Mapping):
        first, second = (each if isinstance(each, Mapping) else {} for each in (one, other))
        return all(is_same(first.get(name), second.get(name), within, None) for name in names)
    if isinstance(one, Between) and isinstance(other, (int, float)):
        return one.least <= other <= one.most
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= within + _RELATIVE * abs(one)
    return one is None and other is None


def _picked(read: Figure, theirs: Figure, names: Figure, exact: float) -> str:
    """The figure, or of a mapping the first that differs."""
    if not isinstance(names, Mapping):
        return f"{read}"
    first, second = (each if isinstance(each, Mapping) else {} for each in (read, theirs))
    differing = [name for name in names if not is_same(first.get(name), second.get(name), exact, None)]
    return f"{len(differing)} names, {differing[0]}: {first.get(differing[0])}, peer {second.get(differing[0])}"
