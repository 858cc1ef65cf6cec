"""What a test's marker allows: ``@pytest.mark.overhead(total="+3%", guard="+100ns", instructions="+0.5%")``."""

from __future__ import annotations

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.studies.check.limits import INSTRUCTIONS, TOTAL, Limit, Limits, parse_limit
from overhead_lens.taxonomy.categories import HOST_CATEGORIES


def limits_of(marker: pytest.Mark | None) -> Limits:
    """The limits of a marker.

    Raises:
        UsageError: It holds something else.
    """
    if marker is None:
        return Limits()
    if marker.args:
        raise UsageError(f"@pytest.mark.overhead takes limits by name, not {marker.args[0]!r}; {_hint()}")
    return Limits.of(_limit(name, value) for name, value in marker.kwargs.items())


def _limit(name: str, value: object) -> Limit:
    try:
        return parse_limit(f"{name}={str(value).removeprefix('+')}")
    except UsageError:
        raise UsageError(f"@pytest.mark.overhead({name}={value!r}) is not a limit; {_hint()}") from None


def _hint() -> str:
    names = ", ".join((TOTAL, *HOST_CATEGORIES, INSTRUCTIONS))
    return f'one is total="+3%", guard="+100ns" (ns, us, ms) or instructions="+0.5%"; names: {names}'
