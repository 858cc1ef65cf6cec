from __future__ import annotations

from threading import Event, get_ident

import pytest

from overhead_lens.traces.side_by_side import beside, side_by_side

MANY = 1_000_000
sizes = pytest.mark.parametrize("events", [0, MANY])


@sizes
def test_results_stand_in_the_order_of_the_values(events: int) -> None:
    assert side_by_side(lambda size: sum(range(size)), range(200, 0, -1), events=events) == [
        n * (n - 1) // 2 for n in range(200, 0, -1)
    ]


@sizes
def test_the_first_error_is_raised(events: int) -> None:
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda value: 1 / value, [2, 1, 0, 1], events=events)


@pytest.mark.parametrize(("events", "here"), [(0, True), (MANY, False)])
def test_few_events_take_no_thread(events: int, here: bool) -> None:
    (ident,) = side_by_side(lambda _: get_ident(), [0], events=events)
    assert (ident == get_ident()) == here
    with beside(events=events) as other:
        assert (other.submit(get_ident).result(60) == get_ident()) == here


@sizes
def test_an_error_beside_is_raised_where_its_result_is_taken(events: int) -> None:
    with beside(events=events) as other:
        failed = other.submit(lambda: 1 / 0)
        assert other.submit(lambda: 7).result(60) == 7
        with pytest.raises(ZeroDivisionError):
            failed.result(60)


def test_an_error_cancels_what_has_not_begun() -> None:
    begun, goes_on = Event(), Event()
    with pytest.raises(KeyError), beside(events=MANY) as other:
        first = other.submit(lambda: begun.set() or goes_on.wait(60))
        second = other.submit(lambda: None)
        assert begun.wait(60)
        raise KeyError
    assert second.cancelled()
    goes_on.set()
    assert first.result(60)
