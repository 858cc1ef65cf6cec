"""The cost lies in page faults: a fresh buffer of which a strided fill touches one byte per page."""

from __future__ import annotations

import ctypes

import torch
from known_cost import COST, Params, place

PAGE_BYTES = 4096

# Below 2 MiB, so that no huge page serves the buffer; above malloc's threshold, so that each buffer is mapped afresh.
BUFFER_BYTES = 480 * PAGE_BYTES
_MMAP_THRESHOLD_BYTES = 128 * 1024
_M_MMAP_THRESHOLD = -3

# About what one fault takes, and unmapping its page.
_FAULT_NS = 1_500


def inputs(params: Params) -> tuple[()]:
    """Nothing; malloc is kept from raising its threshold once the first buffer is freed (mallopt(3))."""
    COST.open(params)
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
    return ()


def call() -> torch.Tensor:
    """A fresh buffer, touched at its first two pages and at as many more as the requested cost needs.

    Filling a single element takes another way through the dispatcher.
    """
    pages = 2 - (-COST.cell[0] // _FAULT_NS)
    buffer = torch.empty(BUFFER_BYTES, dtype=torch.uint8)
    return buffer[: pages * PAGE_BYTES : PAGE_BYTES].fill_(1)


SCENARIO = place(
    "page_fault", "a known cost in page faults of a fresh buffer", "getrusage(2), mallopt(3)", call, inputs=inputs
)
