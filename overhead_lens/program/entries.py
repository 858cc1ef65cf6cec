"""Times of a region's entries, summed in little memory."""

from __future__ import annotations

MOST_BLOCKS = 40


class Entries:
    """Sums over blocks of consecutive entries, and of all squares.

    Where there would be more than ``MOST_BLOCKS``, neighbors are merged, and blocks are twice as long from then on::

        blocks of 1     |.|.|.|.|.|.|.|.|
        blocks of 2     |. .|. .|. .|. .|. .|

    Attributes:
        blocks: Count and ns of each block; the last is not full.
        squares_ns2: Sum of the squares of all times.
    """

    __slots__ = ("_size", "blocks", "squares_ns2")

    def __init__(self) -> None:
        self._size = 1
        self.blocks: list[list[int]] = [[0, 0]]
        self.squares_ns2 = 0

    def add(self, ns: int) -> None:
        """Count an entry that took ``ns``."""
        block = self.blocks[-1]
        if block[0] >= self._size:
            block = self._next()
        block[0] += 1
        block[1] += ns
        self.squares_ns2 += ns * ns

    def row(self) -> list[object]:
        """Count, ns, squares and the blocks that hold entries."""
        # Of two threads that begin a block at once, one leaves its block empty.
        blocks = [tuple(block) for block in self.blocks if block[0]]
        return [sum(count for count, _ in blocks), sum(ns for _, ns in blocks), self.squares_ns2, blocks]

    def _next(self) -> list[int]:
        if len(self.blocks) >= MOST_BLOCKS:
            old = self.blocks
            self.blocks = [
                [old[at][0] + old[at + 1][0], old[at][1] + old[at + 1][1]] for at in range(0, len(old) - 1, 2)
            ]
            self._size *= 2
        block = [0, 0]
        self.blocks.append(block)
        return block
