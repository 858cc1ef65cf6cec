"""What a test's marker allows: ``@pytest.mark.overhead(total="+3%", guard="+100ns", instructions="+0.5%")``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.studies.check.limits import INSTRUCTIONS, TOTAL, CountLimit, Limit, parse_limit
from overhead_lens.taxonomy.categories import HOST_CATEGORIES


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in time and in instructions; without any, a call may not become slower."""

    times: Sequence[Limit] = ()
    counts: Sequence[CountLimit] = ()

    @property
    def only_counts(self) -> bool:
        """Whether nothing is timed."""
        return bool(self.counts) and not self.times


def limits_of(marker: pytest.Mark | None) -> Limits:
    """The limits of a marker.

    Raises:
        UsageError: It says something else.
    """
    if marker is None:
        return Limits()
    if marker.args:
        raise UsageError(f"@pytest.mark.overhead takes limits by name, not {marker.args[0]!r}; {_known()}")
    found = [_limit(name, value) for name, value in marker.kwargs.items()]
    times = [limit for limit in found if isinstance(limit, Limit)]
    return Limits(times, [limit for limit in found if isinstance(limit, CountLimit)])


def _limit(name: str, value: object) -> Limit | CountLimit:
    try:
        return parse_limit(f"{name}={str(value).removeprefix('+')}")
    except UsageError:
        raise UsageError(f"@pytest.mark.overhead({name}={value!r}) is not a limit; {_known()}") from None


def _known() -> str:
    names = ", ".join((TOTAL, *HOST_CATEGORIES, INSTRUCTIONS))
    return f'one is total="+3%", guard="+100ns" (ns, us, ms) or instructions="+0.5%"; names: {names}'
