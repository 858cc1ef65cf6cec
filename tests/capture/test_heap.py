"""Fresh memory: what is made in it lies in one order, whatever lay there before."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

SEED = 20_261_121

# Leaves holes of many sizes, drawn from a seed; starts afresh; tells where blocks lie then; those of 32 bytes are numbers, too,
# and the first may be what starting afresh needed itself.
TELLING = """
import ctypes, json, random, sys
from overhead_lens.capture.heap import start_afresh

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
pooled = ctypes.pythonapi.PyObject_Malloc
pooled.restype, pooled.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
draw = random.Random(sys.argv[1])
kept = [bytes(draw.randrange(1, 2_000)) for _ in range(20_000)]
blocks = [libc.malloc(draw.randrange(1, 60_000)) for _ in range(2_000)]
kept = [each for each in kept if draw.random() < 0.5]
for block in blocks[::2]:
    libc.free(block)
before = [[int(end, 16) for end in line.split()[0].split("-")] for line in open("/proc/self/maps")]
start_afresh(int(sys.argv[2]))
first = libc.malloc(5_000)
print(json.dumps({
    "before": before,
    "malloc": first,
    "blocks": [libc.malloc(size) - first for size in (5_000, 9_000, 30_000)],
    "pools": {size: [pooled(size) for _ in range(12)][4:] for size in range(16, 513, 16) if size != 32},
}))
"""


# Objects/obmalloc.c.
POOL_BITS = 14


def told(seed: int, offset_bytes: int, padding: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", TELLING, str(seed), str(offset_bytes)],
        env={**os.environ, "OVERHEAD_LENS_PADDING": "x" * padding},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's malloc is Linux's")
@pytest.mark.parametrize("offset_bytes", [0, 16, 32, 48])
def test_blocks_lie_in_one_order_whatever_lay_there_before(offset_bytes: int) -> None:
    draw = random.Random(SEED + offset_bytes)
    first, second = (told(draw.getrandbits(32), offset_bytes, draw.randrange(5_000)) for _ in range(2))
    for answer in (first, second):
        assert answer["malloc"] % 64 == offset_bytes
        for blocks in answer["pools"].values():
            assert len({address >> POOL_BITS for address in blocks}) == 1
            assert not any(start <= blocks[0] < end for start, end in answer["before"])
        assert not any(start <= answer["malloc"] < end for start, end in answer["before"])
    assert first["blocks"] == second["blocks"]
