from __future__ import annotations

import pytest

from overhead_lens.readers.py_spy.threads import SampledThread, ThreadHead, joined, read_threads, thread_head
from overhead_lens.stack import Stack, StackFrame

A = StackFrame("a", "a.py", 1, native=False)
B = StackFrame("b", "l.so", 0, native=True)


def test_one_process_and_its_threads() -> None:
    lines = [
        "thread (10): MainThread;a (a.py:1) 3\n",
        "thread (11): Thread-1 (spin);a (a.py:1);b (l.so) 2\n",
        "thread (10): MainThread;a (a.py:1);b (l.so) 4\n",
        "a (a.py:1) 9",
        "thread (10): MainThread;a (a.py:1)",
        "",
    ]
    main, spin = read_threads(lines, 10)
    assert main == SampledThread("MainThread", 10, 10, ((Stack((A,), 3), Stack((A, B), 4)),))
    assert spin == SampledThread("Thread-1 (spin)", 11, 10, ((Stack((A, B), 2),),))
    assert (main.samples, spin.samples) == (7, 2)


def test_children_belong_to_the_innermost_process() -> None:
    root, child = 'process 10:"python -c "f(); g";"', 'process 12:"x";y"'
    lines = [f"{root};thread (10): MainThread;a (a.py:1) 1", f"{root};{child};thread (12): MainThread;a (a.py:1) 2"]
    assert read_threads(lines, 10) == [
        SampledThread("MainThread", 10, 10, ((Stack((A,), 1),),)),
        SampledThread("MainThread", 12, 12, ((Stack((A,), 2),),)),
    ]


@pytest.mark.parametrize(
    ("head", "name", "number"),
    [
        ("thread (0x7F00)", "", 0x7F00),
        ("thread (7)", "", 7),
        ("thread (7): ", "", 7),
        ("thread (7): a (b): 3", "a (b): 3", 7),
    ],
)
def test_names_that_a_program_chose(head: str, name: str, number: int) -> None:
    (found,) = read_threads([f"{head};a (a.py:1) 5"], 7)
    assert (found.name, found.thread, found.stacks) == (name, number, (Stack((A,), 5),))
    assert thread_head(f"{head};a (a.py:1)") == ThreadHead(name, number, 0)
    assert thread_head(f'process 3:"x";process 4:"a;b";{head}') == ThreadHead(name, number, 4)


def test_a_semicolon_in_a_name_leaves_the_thread_known_and_its_inner_frames_whole() -> None:
    (found,) = read_threads(["thread (7): a; b;a (a.py:1);b (l.so) 5", "thread (7): a; b;a (a.py:1);b (l.so) 1"], 7)
    assert (found.name, found.samples, {stack.frames[-1] for stack in found.stacks}) == ("a", 6, {B})


def test_a_thread_without_frames() -> None:
    (found,) = read_threads(["thread (7): idle 5"], 7)
    assert [str(frame) for stack in found.stacks for frame in stack.frames] == ["[no frames]"]


def test_a_stack_without_a_thread() -> None:
    assert thread_head("a (a.py:1);b (l.so)") == ThreadHead("", 0, 0)


def test_threads_of_blocks_are_joined_in_order() -> None:
    first = read_threads(["thread (10): MainThread;a (a.py:1) 3", "thread (11): w;a (a.py:1) 1"], 10)
    second = read_threads(["thread (11): w;b (l.so) 2"], 10)
    # The same number in a child is another thread.
    third = read_threads(['process 12:"x";thread (11): w;a (a.py:1) 5', "thread (10): MainThread;b (l.so) 4"], 10)
    main, worker, child = joined([*first, *second, *third])
    assert main.blocks == ((Stack((A,), 3),), (Stack((B,), 4),))
    assert worker.blocks == ((Stack((A,), 1),), (Stack((B,), 2),))
    assert worker.stacks == (Stack((A,), 1), Stack((B,), 2))
    assert (worker.samples, main.samples, child.samples, child.process) == (3, 7, 5, 12)
