"""The distinct labels of time on a critical path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overhead_lens.stats.values import Ints


@dataclass(frozen=True, slots=True)
class StringTable:
    """Distinct labels; int64 arrays of one length. Number 0 is unexplained time.

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

    def texts(self, codes: Ints) -> npt.NDArray[np.object_]:
        """Names, as ``text`` gives them."""
        used, number = np.unique(codes, return_inverse=True)
        return np.array([self.text(code) for code in used.tolist()], dtype=object)[number.reshape(-1)]

    def selected(self, numbers: Ints) -> StringTable:
        """Some of them, in that order."""
        return StringTable(
            self.kind[numbers], self.name[numbers], self.operator[numbers], self.module[numbers], self.names
        )
