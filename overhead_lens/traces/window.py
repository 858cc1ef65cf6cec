"""A window of a recording."""

from __future__ import annotations

from dataclasses import dataclass

from overhead_lens.errors import require


@dataclass(frozen=True, slots=True)
class Window:
    """An interval of the recording, ``start_ns`` since the earliest event of the file."""

    start_ns: int
    wall_ns: int

    def __post_init__(self) -> None:
        require(self.wall_ns >= 0, "a window ends before it starts")

    @property
    def bounds(self) -> tuple[int, int]:
        """Start and end."""
        return self.start_ns, self.start_ns + self.wall_ns
