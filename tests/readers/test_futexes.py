"""Machine code of a C library, drawn instruction by instruction at chosen places of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overhead_lens.readers.py_spy import futexes
from overhead_lens.readers.py_spy.speedscope import read_sequences

LOADED_AT = 0x7FEF5AE1E000
SYSCALL = b"\x0f\x05"
FUTEX, READ = 202, 0


def mov_eax(number: int) -> bytes:
    return b"\xb8" + number.to_bytes(4, "little")


def push(number: int) -> bytes:
    return b"\x68" + number.to_bytes(4, "little")


def to(opcode: bytes, at: int, target: int) -> bytes:
    """A call (``e8``) or a jump (``e9``) that stands at a place."""
    return opcode + (target - at - 5).to_bytes(4, "little", signed=True)


def library(folder: Path, instructions: dict[int, bytes]) -> Path:
    code = bytearray(b"\x90" * 0x40000)
    for place, instruction in instructions.items():
        code[place : place + len(instruction)] = instruction
    path = folder / "libc.so.6"
    path.write_bytes(code)
    return path


def waits(path: Path, *places: int, loaded_at: int = LOADED_AT) -> bool:
    return futexes.waits(str(path), [loaded_at + place for place in places])


# sem_wait calls a function that ends by jumping to another, which has the system call: glibc 2.36.
BEFORE = {
    0x30D8B: to(b"\xe8", 0x30D8B, 0x30CF0),
    0x30D00: to(b"\xe9", 0x30D00, 0x25E40),
    0x25F0F: mov_eax(FUTEX) + SYSCALL,
}
# The number is an argument, handed down to the function that has the one system call of all: glibc 2.41 and later.
SINCE = {
    0x31C7F: push(FUTEX) + b"\x45\x31\xc0" + to(b"\xe8", 0x31C87, 0x31980),
    0x319CF: to(b"\xe8", 0x319CF, 0x3CED0),
    0x3CEFC: SYSCALL,
}


@pytest.mark.parametrize("loaded_at", [LOADED_AT, 0x5000])
def test_a_futex_behind_a_jump(tmp_path: Path, loaded_at: int) -> None:
    path = library(tmp_path, BEFORE)
    assert waits(path, 0x2724A, 0x30D90, 0x25F16, loaded_at=loaded_at)


def test_a_futex_whose_number_is_an_argument(tmp_path: Path) -> None:
    path = library(tmp_path, SINCE)
    assert waits(path, 0x29FBA, 0x3C22E, 0x31C8C, 0x319D4, 0x3CEFE)


@pytest.mark.parametrize(
    ("changed", "places"),
    [
        ({0x25F0F: mov_eax(READ)}, (0x30D90, 0x25F16)),
        ({0x25F0F: b"\x90" * 5}, (0x30D90, 0x25F16)),
        ({0x25F14: b"\x90" * 2}, (0x30D90, 0x25F16)),
        ({0x30D8B: b"\x90"}, (0x30D90, 0x25F16)),
        ({0x30D00: b"\x90"}, (0x30D90, 0x25F16)),
        ({}, (0x30D91, 0x25F16)),
        ({}, (0x30D90, 0x25F17)),
        ({}, (0x30D90, 0x26F16)),
        ({}, (0x25F16,)),
    ],
)
def test_all_must_fit(tmp_path: Path, changed: dict[int, bytes], places: tuple[int, ...]) -> None:
    path = library(tmp_path, {**BEFORE, **changed})
    assert not waits(path, *places)


@pytest.mark.parametrize("changed", [{0x31C7F: push(READ)}, {0x31C7F: b"\x90" * 5}, {0x319CF: b"\x90"}])
def test_an_argument_must_be_the_number(tmp_path: Path, changed: dict[int, bytes]) -> None:
    instructions = {**SINCE, **changed}
    instructions[0x31C87] = to(b"\xe8", 0x31C87, 0x31980)
    path = library(tmp_path, instructions)
    assert not waits(path, 0x3C22E, 0x31C8C, 0x319D4, 0x3CEFE)


def test_other_libraries_and_lost_ones_say_nothing(tmp_path: Path) -> None:
    path = library(tmp_path, BEFORE)
    other = path.rename(tmp_path / "libm.so.6")
    assert not waits(other, 0x30D90, 0x25F16)
    assert not waits(tmp_path / "gone" / "libc.so.6", 0x30D90, 0x25F16)


def test_the_innermost_frame_of_a_stack_says_so(tmp_path: Path) -> None:
    path = library(tmp_path, BEFORE)
    frames = [{"name": "join", "file": "/usr/lib/python3.13/threading.py", "line": 3}]
    frames += [{"name": hex(LOADED_AT + place), "file": str(path), "line": 0} for place in (0x30D90, 0x25F16)]
    profiles = [{"samples": [[0, 1, 2], [0, 1]]}]
    content = json.dumps({"profiles": profiles, "shared": {"frames": frames}}).encode()
    outer = f"join (lib/python3.13/threading.py:3);{LOADED_AT + 0x30D90:#x} (libc.so.6)"
    assert read_sequences(content) == ((f"{outer};futex (libc.so.6)", outer),)
