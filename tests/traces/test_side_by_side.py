from __future__ import annotations

from threading import Event

import pytest

from overhead_lens.traces.side_by_side import beside, side_by_side


def test_results_stand_in_the_order_of_the_values() -> None:
    assert side_by_side(lambda size: sum(range(size)), range(200, 0, -1)) == [
        n * (n - 1) // 2 for n in range(200, 0, -1)
    ]


def test_the_first_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda value: 1 / value, [2, 1, 0, 1])


def test_an_error_cancels_what_has_not_begun() -> None:
    begun, goes_on = Event(), Event()
    with pytest.raises(KeyError), beside() as other:
        first = other.submit(lambda: begun.set() or goes_on.wait(60))
        second = other.submit(lambda: None)
        assert begun.wait(60)
        raise KeyError
    assert second.cancelled()
    goes_on.set()
    assert first.result(60)
