"""The collector of a measuring process is as before when it is ready."""

from __future__ import annotations

import gc

import pytest

from overhead_lens.worker.collector import collecting_rarely


@pytest.mark.parametrize("last", [None, 0])
def test_thresholds_are_put_back_even_where_python_does_not_tell_the_last(
    last: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    get, before = gc.get_threshold, gc.get_threshold()
    monkeypatch.setattr(gc, "get_threshold", lambda: get() if last is None else (*get()[:2], last))
    with collecting_rarely():
        assert get()[0] == 100_000
    assert get()[:2] == before[:2]
    gc.set_threshold(*before)
