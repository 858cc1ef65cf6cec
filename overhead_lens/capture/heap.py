"""Where objects lie, made independent of what lay there before.

A process starts with strings of its environment and of paths. Their lengths decide where all that is made later lies, and that
decides how many instructions a call takes:

- Freeing an object of CPython takes four more in one part of its arena than in the other, unless the arena starts at a multiple
  of its size (Objects/obmalloc.c, ``arena_map_is_used``); a call that empties and refills a pool takes 0.2 % more.
- A call for which malloc finds free blocks splits and joins them, for up to 5 %.
- Tables by address have collisions: pybind11 looks up in one the type of every object that it is given.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

# Objects/obmalloc.c on 64 bits: an arena, a pool in it, sizes of blocks.
_ARENA_BYTES = 1 << 20
_POOL_BYTES = 1 << 14
_SIZES = range(16, 513, 16)
# Where Python is built without pools, none is found.
_MOST_BLOCKS = 1 << 18
_MOST_OF_A_POOL = 0.9

# glibc's malloc.h; how far the top grows; the largest block that malloc takes from it; blocks that may be free below it.
_M_TRIM_THRESHOLD, _M_TOP_PAD = -1, -2
_TOP_BYTES = 32 << 20
_BLOCK_BYTES = 100_000
_FREE_BLOCKS = (*(1024 << power for power in range(6, 0, -1)), *range(1024, 16, -16))
# The top is brought to a multiple of this; blocks that lie 48 bytes apart reach every place within a line.
_PLACE_BYTES = 8 << 20
_STEP_BYTES, _APART_BYTES, _LINE_BYTES = 40, 48, 64
_MOST_BYTES = 16 * _TOP_BYTES


class _ArenaAllocator(ctypes.Structure):
    """``PyObjectArenaAllocator`` (Include/cpython/objimpl.h)."""

    _fields_ = (("ctx", ctypes.c_void_p), ("alloc", ctypes.c_void_p), ("free", ctypes.c_void_p))


def start_afresh(offset_bytes: int = 0) -> None:
    """Have CPython and malloc serve what follows from memory in which nothing lies yet, at places that are always the same.

    Only with glibc; of CPython's memory only where it is built with pools. What lies there stays, what is free is never used.

    Args:
        offset_bytes: Of malloc's next block within a line of 64 bytes; a multiple of 16. It decides what ``posix_memalign`` does,
            call after call.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt") and hasattr(libc, "aligned_alloc"):
        _start_pools(libc)
        _start_heap(libc, offset_bytes)


def _start_pools(libc: ctypes.CDLL) -> None:
    """Use up all of CPython's arenas; the next start at multiples of their size. Then more than a pool of every size."""
    allocator = _ArenaAllocator(
        # alloc(ctx, size) is aligned_alloc's signature; free(ctx, address, size) may be what does nothing.
        _ARENA_BYTES,
        ctypes.cast(libc.aligned_alloc, ctypes.c_void_p),
        ctypes.cast(libc.getpid, ctypes.c_void_p),
    )
    ctypes.pythonapi.PyObject_SetArenaAllocator(ctypes.byref(allocator))
    malloc = ctypes.pythonapi.PyObject_Malloc
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    if not _take_pools(malloc, _SIZES[-1], _ARENA_BYTES // _POOL_BYTES):
        return
    for size_bytes in _SIZES:
        if not _take_pools(malloc, size_bytes, 1):
            return
        for _ in range(_POOL_BYTES // size_bytes // 2):
            malloc(size_bytes)


def _take_pools(malloc: Callable[[int], int], size_bytes: int, count: int) -> bool:
    """Take blocks until most of ``count`` pools in a row, from a multiple of as much, were taken one after another.

    Not all: the numbers that are made here lie in pools themselves.
    """
    whole_bytes = count * _POOL_BYTES
    enough = _MOST_OF_A_POOL * whole_bytes // size_bytes
    taken, place = 0, -1
    for _ in range(_MOST_BLOCKS):
        address = malloc(size_bytes)
        if address // whole_bytes != place:
            taken, place = 0, address // whole_bytes
        taken += 1
        if taken >= enough:
            return True
    return False


def _start_heap(libc: ctypes.CDLL, offset_bytes: int) -> None:
    """Take all free blocks, then bring the top of the heap to a multiple of ``_PLACE_BYTES`` and its next block to the offset."""
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.mallopt(_M_TOP_PAD, _TOP_BYTES)
    libc.mallopt(_M_TRIM_THRESHOLD, 16 * _TOP_BYTES)
    libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
    fresh = libc.sbrk(0)
    for size_bytes in (_BLOCK_BYTES, *_FREE_BLOCKS):
        _take_until(lambda address: address >= fresh, libc, size_bytes)
    place = -(-libc.malloc(_STEP_BYTES) // _PLACE_BYTES) * _PLACE_BYTES
    _take_until(lambda address: address >= place - 2 * _BLOCK_BYTES, libc, _BLOCK_BYTES)
    _take_until(lambda address: address + _APART_BYTES >= place, libc, _STEP_BYTES)
    _take_until(lambda address: (address + _APART_BYTES) % _LINE_BYTES == offset_bytes, libc, _STEP_BYTES)


def _take_until(there: Callable[[int], bool], libc: ctypes.CDLL, size_bytes: int) -> None:
    """Take blocks until one lies where it should, or so much was taken that the heap must have gone on somewhere else."""
    for _ in range(_MOST_BYTES // size_bytes):
        if there(libc.malloc(size_bytes)):
            return
