"""py-spy's speedscope files: the stacks of each thread in their order, printed as its raw format prints them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.readers.py_spy.speedscope import read_sequences
from overhead_lens.readers.py_spy.stacks import split_frames
from tests.drawn.speedscope import speedscope

FRAMES = (
    "<module> (train.py:3)",
    "at::f<int, long> const& (libtorch_cpu.so)",
    "0x7f00 (libc.so.6)",
    "_PyEval (ceval.c:77)",
    "futex",
)


@given(st.lists(st.lists(st.lists(st.sampled_from(FRAMES), max_size=5).map(";".join), min_size=1), max_size=4))
def test_what_is_written_is_read(sequences: list[list[str]]) -> None:
    assert read_sequences(speedscope(*sequences).encode()) == tuple(map(tuple, sequences))


def test_a_thread_with_its_name() -> None:
    stacks = ("thread (7): a b;<module> (train.py:3)", "thread (7): a b")
    assert split_frames(stacks[0]) == ["thread (7): a b;<module> (train.py:3)"]
    file = {
        "profiles": [{"samples": [[0, 1], [0]]}],
        "shared": {"frames": [{"name": "thread (7): a b"}, {"name": "<module>", "file": "train.py", "line": 3}]},
    }
    assert read_sequences(json.dumps(file).encode()) == (stacks,)


def test_a_command_line_of_several_lines() -> None:
    names = ['process 7:"python -c \nimport a\r\na.b()"', "thread (7): a\nb"]
    file = {"profiles": [{"samples": [[0, 1]]}], "shared": {"frames": [{"name": name} for name in names]}}
    assert read_sequences(json.dumps(file).encode()) == (('process 7:"python -c  import a a.b()";thread (7): a b',),)


def test_no_path_of_the_machine_is_left() -> None:
    frames = [
        {"name": "a", "file": "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", "line": 7},
        {"name": "b", "file": "/home/ada/train.py", "line": 3},
        {"name": "c", "file": "/opt/env/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"},
    ]
    file = {"profiles": [{"samples": [[0, 1, 2]]}], "shared": {"frames": frames}}
    assert read_sequences(json.dumps(file).encode()) == (
        ("a (site-packages/torch/nn/modules/module.py:7);b (train.py:3);c (libtorch_cpu.so)",),
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "not a speedscope file: Input data was truncated"),
        (b"a (a.py:1) 3\n", "not a speedscope file: JSON is malformed: invalid character (byte 0)"),
        (b"{}", "not a speedscope file: Object missing required field `profiles`"),
        (
            b'{"profiles": [{"weights": []}], "shared": {"frames": []}}',
            "not a speedscope file: Object missing required field `samples` - at `$.profiles[0]`",
        ),
        (
            b'{"profiles": [{"samples": [[0, 1]]}], "shared": {"frames": [{"name": "a"}]}}',
            "not a speedscope file: a stack names a frame that is not there",
        ),
    ],
)
def test_what_is_no_such_file(content: bytes, line: str) -> None:
    with pytest.raises(ValueError, match=r"^not a speedscope file") as caught:
        read_sequences(content)
    assert str(caught.value) == line
