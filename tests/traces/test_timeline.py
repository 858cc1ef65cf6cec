from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.traces.timeline import Nesting, Segments, nearest, sum_by, sweep


def drawn(*rows: str) -> tuple[np.ndarray, np.ndarray]:
    """Events from a drawing, one row each: ``[`` is the start, ``)`` the end, one column is one ns."""
    starts = np.array([row.index("[") for row in rows], dtype=np.int64)
    ends = np.array([row.index(")") for row in rows], dtype=np.int64)
    return starts, ends - starts


def swept(*rows: str, window: tuple[int, int] | None = None) -> tuple[list[int], int]:
    starts, durations = drawn(*rows)
    segments = sweep(starts, durations, window or (0, int((starts + durations).max())))
    return segments.self_ns(len(rows)).tolist(), segments.uncovered_ns()


def test_nested() -> None:
    assert swept(
        "[--------)",
        " [--)     ",
        "     [-)  ",
    ) == ([4, 3, 2], 0)


def test_crossing_belongs_to_the_one_that_started_last() -> None:
    assert swept(
        "  [------)   ",
        "     [-----) ",
    ) == ([3, 6], 2)


def test_touching_siblings_and_a_gap() -> None:
    assert swept(
        "[--)        ",
        "   [--)     ",
        "        [--)",
    ) == ([3, 3, 3], 2)


def test_equal_starts_go_to_the_shorter() -> None:
    assert swept(
        "[----)",
        "[--)  ",
    ) == ([2, 3], 0)


def test_events_are_cut_at_the_window() -> None:
    assert swept("[---------)", window=(2, 5)) == ([3], 0)
    assert swept("[-)        ", window=(5, 9)) == ([0], 4)


def test_parents() -> None:
    starts, durations = drawn(
        "[--------)",
        " [--)     ",
        "  [)      ",
        "     [-)  ",
        "          [)",
    )
    assert Nesting(starts, durations).parent.tolist() == [-1, 0, 1, 0, -1]


def nearest_marked(marked: str, *rows: str) -> tuple[list[int], list[int]]:
    """The innermost and the outermost marked (``x``) event at or around each event of a drawing."""
    parent, marks = Nesting(*drawn(*rows)).parent, np.array([mark == "x" for mark in marked])
    return nearest(parent, marks).tolist(), nearest(parent, marks, outermost=True).tolist()


def test_the_nearest_marked_event() -> None:
    drawing = (
        "[----------)      ",
        " [-------)        ",
        "  [---)           ",
        "   [-)            ",
        "         [-)      ",
        "              [--)",
    )
    assert nearest_marked("x.x...", *drawing) == ([0, 0, 2, 2, 0, -1], [0, 0, 0, 0, 0, -1])
    assert nearest_marked(".....x", *drawing) == ([-1, -1, -1, -1, -1, 5], [-1, -1, -1, -1, -1, 5])
    assert nearest_marked("......", *drawing) == ([-1] * 6, [-1] * 6)


def test_of_equal_starts_the_longer_is_around_the_shorter_and_of_two_alike_the_first() -> None:
    drawing = (
        "[--)   ",
        "[-----)",
        "[--)   ",
    )
    assert nearest_marked("x..", *drawing) == ([0, -1, 0], [0, -1, 0])
    assert nearest_marked("xx.", *drawing) == ([0, 1, 0], [1, 1, 1])
    assert nearest_marked("..x", *drawing) == ([-1, -1, 2], [-1, -1, 2])


def test_an_event_that_crosses_an_end_is_inside_what_it_began_in() -> None:
    drawing = (
        "[----)     ",
        "   [-----) ",
        "      [-)  ",
    )
    assert nearest_marked("x..", *drawing) == ([0, 0, 0], [0, 0, 0])


def open_at(instants: list[int], *rows: str) -> list[int]:
    return Nesting(*drawn(*rows)).open_at(np.array(instants, dtype=np.int64)).tolist()


def test_what_is_open_at_an_instant() -> None:
    drawing = (
        " [--------)  ",
        " [--)        ",
        "     [)      ",
        "           [)",
    )
    # From its start to before its end; what started at the same time and is shorter is further in.
    assert open_at([0, 1, 3, 4, 5, 6, 9, 10, 11, 12, 13], *drawing) == [-1, 1, 1, 0, 2, 0, 0, -1, 3, -1, -1]
    assert Nesting(*drawn()).open_at(np.array([3])).tolist() == [-1]


def test_an_event_of_no_length_is_never_open() -> None:
    starts, durations = np.array([0, 3, 3]), np.array([9, 0, 2])
    assert Nesting(starts, durations).open_at(np.array([2, 3, 5])).tolist() == [0, 2, 0]


EVENTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=20)


def arrays(events: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    rows = np.array(events, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def segments_of(events: list[tuple[int, int]], window: tuple[int, int]) -> Segments:
    return sweep(*arrays(events), window)


@given(events=EVENTS, window=st.tuples(st.integers(0, 30), st.integers(30, 70)))
def test_segments_partition_the_window(events: list[tuple[int, int]], window: tuple[int, int]) -> None:
    segments = segments_of(events, window)
    assert int(segments.dur_ns.sum()) == window[1] - window[0]
    assert (segments.dur_ns > 0).all()
    edges = [*segments.start_ns.tolist(), window[1]]
    assert [start + dur for start, dur in zip(segments.start_ns, segments.dur_ns, strict=True)] == edges[1:]
    assert int(segments.self_ns(len(events)).sum()) + segments.uncovered_ns() == window[1] - window[0]


@given(events=EVENTS)
def test_every_instant_belongs_to_the_open_event_that_started_last(events: list[tuple[int, int]]) -> None:
    segments = segments_of(events, (0, 60))
    for start, dur, owner in zip(segments.start_ns, segments.dur_ns, segments.owner, strict=True):
        for instant in range(start, start + dur):
            open_starts = [s for s, d in events if s <= instant < s + d]
            assert (owner == -1) == (not open_starts)
            if open_starts:
                assert events[owner][0] == max(open_starts)


@given(events=EVENTS, marked=st.lists(st.booleans(), min_size=20, max_size=20), outermost=st.booleans())
def test_the_nearest_is_the_first_marked_one_upwards(
    events: list[tuple[int, int]], marked: list[bool], outermost: bool
) -> None:
    nesting = Nesting(*arrays(events))
    found = nearest(nesting.parent, np.array(marked[: len(events)], dtype=bool), outermost=outermost).tolist()
    for at, near in enumerate(found):
        chain = [at]
        while (above := int(nesting.parent[chain[-1]])) >= 0:
            chain.append(above)
        hits = [each for each in chain if marked[each]]
        assert near == (hits[-1 if outermost else 0] if hits else -1)


@given(events=EVENTS, instants=st.lists(st.integers(-2, 62), max_size=9))
def test_what_is_open_is_around_an_event_of_no_length_there(events: list[tuple[int, int]], instants: list[int]) -> None:
    starts, durations = arrays([*events, *((instant, 0) for instant in instants)])
    expected = Nesting(starts, durations).parent[len(events) :].tolist()
    assert Nesting(*arrays(events)).open_at(np.array(instants, dtype=np.int64)).tolist() == expected


@given(events=EVENTS, shift=st.integers(-(10**15), 10**15))
def test_a_shift_of_the_clock_changes_nothing(events: list[tuple[int, int]], shift: int) -> None:
    moved = [(start + shift, dur) for start, dur in events]
    here, there = segments_of(events, (0, 60)), segments_of(moved, (shift, 60 + shift))
    assert here.owner.tolist() == there.owner.tolist()
    assert here.dur_ns.tolist() == there.dur_ns.tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**40), 2**53)), max_size=12))
def test_sums_are_exact(drawn: list[tuple[int, int]]) -> None:
    group, values = np.array(drawn, dtype=np.int64).reshape(-1, 2).T
    expected = [sum(value for at, value in drawn if at == number) for number in range(4)]
    assert sum_by(group, values, 4).tolist() == expected
