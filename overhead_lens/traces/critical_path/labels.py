"""What takes time on a critical path, told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from overhead_lens.stats.values import Ints


@dataclass(frozen=True, slots=True)
class Labels:
    """What takes time, told apart; int64 arrays of one length. Number 0 is what nothing explains.

    Attributes:
        kind: Number in ``KINDS``.
        name, operator, module: Numbers in ``names``; -1 for none.
        names: Names of events and gaps.
    """

    kind: Ints
    name: Ints
    operator: Ints
    module: Ints
    names: Sequence[str]

    def text(self, code: int) -> str:
        """A name; empty for none."""
        return self.names[code] if code >= 0 else ""
