from __future__ import annotations

import pytest

from overhead_lens.readers.py_spy.stacks import by_root, inside, parse_frame, parse_stacks, split_frames
from overhead_lens.stack import Stack, StackFrame


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("add1 (loop.py:3)", StackFrame("add1", "loop.py", 3, native=False)),
        ("loop (linear_loop.py)", StackFrame("loop", "linear_loop.py", 0, native=False)),
        ("w (a/codegen.py:codegen(run):8)", StackFrame("w", "a/codegen.py:codegen(run)", 8, native=False)),
        ("malloc (libc.so.6)", StackFrame("malloc", "libc.so.6", 0, native=True)),
        ("0x7f94ff04524a (libc.so.6)", StackFrame("", "libc.so.6", 0, native=True)),
        ("0x7f94ff04524a", StackFrame("", "", 0, native=True)),
        ("kernel (cabc.main.cpp:69)", StackFrame("kernel", "cabc.main.cpp", 69, native=True)),
        (
            "f<a, b>(int)::{lambda()#2}::operator() const (libtorch.so)",
            StackFrame("f<a, b>(int)::{lambda()#2}::operator() const", "libtorch.so", 0, native=True),
        ),
    ],
)
def test_frames(text: str, frame: StackFrame) -> None:
    assert parse_frame(text) == frame
    assert parse_frame(text) is parse_frame(text), "a frame of many stacks is parsed once"


def test_semicolon_inside_a_symbol_does_not_split() -> None:
    assert split_frames("a (x.py:1);b{;} (l.so);c (l.so)") == ["a (x.py:1)", "b{;} (l.so)", "c (l.so)"]


def test_damaged_lines_are_skipped() -> None:
    lines = ["a (x.py:1) 3\n", "no count\n", "\n", "a (x.py:1);b (l.so) 2\n"]
    assert [stack.count for stack in parse_stacks(lines)] == [3, 2]


def test_only_the_measured_loop_counts_and_nothing_above_it() -> None:
    lines = ["main (m.py:1);loop (l.py:2);f (f.py:3) 5", "main (m.py:1);start (s.py:2) 7", "loop (libx.so) 9"]
    assert inside(parse_stacks(lines), "loop") == [
        Stack((StackFrame("loop", "l.py", 2, native=False), StackFrame("f", "f.py", 3, native=False)), 5)
    ]


def test_processes_are_told_apart_by_their_root() -> None:
    lines = [
        "sampler 0 (py-spy:1);a (a.py:1) 1",
        "sampler 1 (py-spy:1);a (a.py:1) 2",
        "sampler 0 (py-spy:1);b (b.py:1) 4",
    ]
    assert [[stack.count for stack in group] for group in by_root(parse_stacks(lines))] == [[1, 4], [2]]
