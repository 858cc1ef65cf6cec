"""Machine code of loops: it says what Python says, is kept, and is loaded without its compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens import machine_code
from overhead_lens.machine_code import MachineCode


def mixed(numbers: Any, table: Any, offset: int, pair: Any, out: Any) -> tuple[int, int]:
    """Weighted sum of ``numbers`` by the first column of ``table``; the parts of ``pair`` are added up into ``out``."""
    total = offset
    for at in range(len(numbers)):
        total += numbers[at] * table[at, 0]
    first, second = pair
    for at in range(len(out)):
        out[at] = first[at] + second[at]
    return total, table.shape[1]


def last(values: Any) -> int:
    """The last of the values."""
    return values[-1]


def double(values: Any) -> None:
    """Double them in place."""
    for at in range(len(values)):
        values[at] *= 2


CODE = MachineCode(f"{__name__}:mixed", results=2)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "overhead-lens"


@given(
    rows=st.lists(st.tuples(*[st.integers(-1000, 1000)] * 5), max_size=20),
    offset=st.integers(-(2**40), 2**40),
)
def test_it_says_what_python_says(rows: list[tuple[int, ...]], offset: int) -> None:
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    numbers = table[:, 0].astype(np.int32)
    pair = (table[:, 1].astype(np.int16), table[:, 2].copy())
    wide = np.ascontiguousarray(table[:, 3:])
    plain, native = (np.zeros(len(table), dtype=np.int64) for _ in range(2))
    expected = mixed(numbers.astype(np.int64), wide, offset, pair, plain)
    assert CODE(numbers, wide, offset, pair, native) == tuple(map(int, expected))
    assert native.tolist() == plain.tolist()


def test_what_is_kept_is_loaded_without_numba(own_cache: Path) -> None:
    code = f"""
import sys
import numpy as np
from overhead_lens.machine_code import MachineCode
last = MachineCode({f"{__name__}:last"!r})
values = np.array([3, 5, 8])
print(last.is_stored(values), *last(values), last.is_stored(values), "numba" in sys.modules)
"""
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == ["False 8 True True\n", "True 8 True False\n"]
    assert len(list(own_cache.iterdir())) == 1


def test_types_have_code_of_their_own(own_cache: Path) -> None:
    for dtype in (np.int64, np.int32, np.uint8):
        assert MachineCode(f"{__name__}:last")(np.array([1, 250], dtype=dtype)) == (250,)
    assert len(list(own_cache.iterdir())) == 3


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:40] + b"\0" + data[41:]]
)
def test_damaged_code_is_compiled_again(own_cache: Path, damage: Any) -> None:
    values = np.array([1, 2])
    assert MachineCode(f"{__name__}:last")(values) == (2,)
    (file,) = own_cache.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert not MachineCode(f"{__name__}:last").is_stored(values)
    assert MachineCode(f"{__name__}:last")(values) == (2,)
    assert MachineCode(f"{__name__}:last").is_stored(values)


def test_nothing_is_returned_and_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    values = np.array([1, 2])
    assert MachineCode(f"{__name__}:double", results=0)(values) == ()
    assert values.tolist() == [2, 4]


def test_a_user_without_a_home_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pytest.importorskip("pwd"), "getpwuid", unknown)
    values = np.array([1, 2])
    assert MachineCode(f"{__name__}:last")(values) == (2,)
    assert not MachineCode(f"{__name__}:last").is_stored(values)


def test_a_numba_without_these_parts_calls_it_itself(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "_compiled", lambda *_: None)
    values = np.array([4, 6])
    assert MachineCode(f"{__name__}:last")(values) == (6,)
    assert MachineCode(f"{__name__}:double", results=0)(values) == ()
    assert values.tolist() == [8, 12]
    assert not own_cache.exists()


def test_an_array_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="not contiguous"):
        MachineCode(f"{__name__}:last")(np.arange(6)[::2])
