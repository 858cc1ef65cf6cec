"""The tree of sampled stacks: exact sums before and after folding, and the rule that claimed each frame."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.report.outline import Notes
from overhead_lens.report.page.charts.icicle import corrected, difference_icicle, icicle
from overhead_lens.report.page.charts.tree import ROOT, Node, callers_of, folded, tree_of
from overhead_lens.report.page.model import Icicle
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.taxonomy.host import HostCategory

CLASSIFIER = default_classifier()
USER, ADD, EMPTY = (
    "step (train.py:3)",
    "at::_ops::add_Tensor::call (libtorch_cpu.so)",
    "at::detail::empty_cpu (libtorch_cpu.so)",
)


def stack(*frames: str, count: int = 1) -> Stack:
    (found,) = parse_stacks([f"{';'.join(frames)} {count}"])
    return found


def tree(*stacks: Stack) -> list[Node]:
    return tree_of(stacks, CLASSIFIER, "the call")


def drawn(nodes: object) -> list[tuple[int, str, int, int]]:
    return [(node.parent, node.name.split(" ")[0], node.total, node.own) for node in nodes]  # type: ignore[attr-defined]


def test_stacks_become_a_tree() -> None:
    nodes = tree(stack(USER, ADD, count=3), stack(USER, count=1), stack(USER, ADD, EMPTY, count=2))
    assert drawn(nodes) == [
        (ROOT, "the", 6, 0),
        (0, "step", 6, 1),
        (1, "at::_ops::add_Tensor::call", 5, 3),
        (2, "at::detail::empty_cpu", 2, 2),
    ]
    assert [node.attribution.category for node in nodes[1:]] == ["python", "dispatcher", "allocation"]
    assert [node.inherited for node in nodes[1:]] == [False, False, False]


def test_a_frame_has_the_line_that_was_seen_most() -> None:
    nodes = tree(stack("f (a.py:7)", count=2), stack("f (a.py:9)", count=3))
    assert [(node.name, node.line, node.total) for node in nodes[1:]] == [("f (a.py)", 9, 5)]


def test_an_innermost_frame_has_the_line_that_was_seen_most_whoever_calls_it() -> None:
    nodes = callers_of(tree(stack("a (m.py:1)", "f (a.py:7)"), stack("b (m.py:2)", "f (a.py:9)", count=9)))
    assert [(node.name, node.line, node.total) for node in nodes if node.parent == 0] == [("f (a.py)", 9, 10)]


def test_a_neutral_frame_counts_as_its_caller() -> None:
    nodes = tree(stack(USER, ADD, "__memcpy (libc.so.6)"))
    assert (nodes[3].attribution.category, nodes[3].inherited) == ("dispatcher", True)


def test_no_stacks_no_tree() -> None:
    assert tree() == []
    assert folded([], 5, 0.1).nodes == ()


def test_small_frames_are_folded_into_one() -> None:
    nodes = tree(
        stack(USER, ADD, count=96), stack(USER, EMPTY, "x (liba.so)", count=2), stack(USER, "g (b.py:1)", count=2)
    )
    result = folded(nodes, 100, 0.05)
    assert drawn(result.nodes) == [
        (ROOT, "the", 100, 0),
        (0, "step", 100, 0),
        (1, "at::_ops::add_Tensor::call", 96, 96),
        (1, "3", 4, 4),
    ]
    assert (result.nodes[3].name, result.nodes[3].folded) == ("3 smaller frames", 3)
    assert (result.frames, result.stacks) == (3, 4)


def test_no_more_frames_than_asked_for() -> None:
    nodes = tree(*(stack(USER, f"f{size} (a.py:1)", count=size) for size in range(1, 41)))
    result = folded(nodes, 12, 0.0)
    assert sorted(node.total for node in result.nodes if not node.folded) == [*range(31, 41), 820, 820]
    (rest,) = [node for node in result.nodes if node.folded]
    assert (rest.folded, rest.own) == (30, sum(range(1, 31)))


def test_small_innermost_frames_have_the_category_of_their_time() -> None:
    kernels = [stack(USER, ADD, f"at::native::k{at}_kernel (libtorch_cpu.so)") for at in range(8)]
    result = folded(callers_of(tree(*kernels, stack(USER, count=12))), 100, 0.1)
    assert drawn(result.nodes) == [(ROOT, "the", 20, 0), (0, "step", 12, 12), (0, "24", 8, 8)]
    assert (result.nodes[2].attribution.category, result.frames, result.stacks) == ("kernel", 24, 8)


def test_innermost_frames_stay_however_many_callers_others_have() -> None:
    callers = [f"f{at} (m{at}.py:1)" for at in range(30)]
    stacks = [stack(*callers, f"at::native::k{at}_kernel (libtorch_cpu.so)", count=10) for at in range(300)]
    nodes = [node for node in folded(callers_of(tree(*stacks)), 1_200, 0.0005).nodes if not node.folded]
    assert len(nodes) == 1_200
    assert sum(node.parent == 0 for node in nodes) == 300


def test_innermost_frames_that_are_too_small_take_no_place() -> None:
    cold = [stack(USER, f"cold{at} (libx.so)") for at in range(50)]
    callers = [stack(USER, f"a{at} (liba.so)", ADD, count=1_000) for at in range(5)]
    result = folded(callers_of(tree(*callers, *cold)), 20, 0.05)
    assert [node.total for node in result.nodes if node.parent == 1 and not node.folded] == [1_000] * 5


def test_the_page_says_what_is_folded_of_both_trees() -> None:
    stacks = [stack(USER, ADD, f"at::native::k{at}_kernel (libtorch_cpu.so)") for at in range(1_500)]
    picture, said = icicle(tree(*stacks), 1_500, "call", ())
    small = "of less than 0.05% each or beyond the 1,200 largest"
    assert said == Notes(
        [
            "1,500 stacks; the whole width is 1.50 µs per call.",
            f"Folded: 303 frames {small}; 20.2% of the stacks end in them.",
            f"Folded with the innermost on top: 3,301 frames {small}; 20.1% of the stacks end in them.",
        ]
    )
    assert isinstance(picture, Icicle)
    assert picture.callers is not None
    assert [len(each.tiles) for each in (picture.tree, picture.callers)] == [1_200 + 1, 1_200 + 1 + 1_199]


def test_what_the_budget_corrects_is_said_on_the_scale_of_the_stacks() -> None:
    host = [
        HostCategory("python", 800, (800, 800), 0.8, "samples"),
        HostCategory("wait", 200, (200, 200), 0.2, "samples"),
    ]
    _, said = icicle(tree(stack(USER)), 500, "watch", host)
    assert isinstance(said, Notes)
    words = "Other evidence corrects these stacks in the budget, here on the scale of the stacks: python 400 ns (by stacks 500 ns), wait 100 ns (by stacks 0 ns)."
    assert said.lines[1:] == [words]


def test_the_budget_corrects_no_stacks_where_none_were_counted() -> None:
    assert corrected(tree(stack(USER, count=0)), 500, [HostCategory("python", 500, (500, 500), 1.0, "samples")]) == []


def test_the_page_says_what_is_folded_of_a_difference() -> None:
    base, new = (tree(stack(USER, count=9_999), stack(USER, leaf)) for leaf in (ADD, EMPTY))
    _, said = difference_icicle(base, new, (1_000, 1_000), "call")
    assert isinstance(said, Notes)
    assert said.lines[1:] == ["Folded: 2 frames of less than 0.05% each or beyond the 1,200 largest."]


def test_a_difference_draws_no_more_frames_than_said_even_if_all_are_of_one_size() -> None:
    side = tree(*(stack(f"f{at} (a.py:1)", count=1) for at in range(1_500)))
    picture, said = difference_icicle(side, side, (1_000, 1_000), "call")
    assert isinstance(picture, Icicle)
    assert len(picture.tree.tiles) == 1_200
    assert isinstance(said, Notes)
    assert said.lines[1:] == ["Folded: 301 frames of less than 0.05% each or beyond the 1,200 largest."]


NAMES = st.sampled_from(["f (a.py:1)", "g (a.py:2)", "f (b.py:1)", ADD, EMPTY])
STACKS = st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=6), st.integers(1, 50)), min_size=1, max_size=12)


@given(STACKS, st.integers(1, 12), st.sampled_from([0.0, 0.01, 0.2]))
def test_totals_sum_whatever_is_folded(given_stacks: list, most: int, least_share: float) -> None:
    stacks = [stack(*names, count=count) for names, count in given_stacks]
    whole = sum(each.count for each in stacks)
    for nodes in (tree(*stacks), folded(tree(*stacks), most, least_share).nodes):
        below: Counter[int] = Counter()
        for place, node in enumerate(nodes):
            assert node.parent < place
            below[node.parent] += node.total
        assert all(node.total == node.own + below[place] for place, node in enumerate(nodes))
        assert nodes[0].total == whole == sum(node.own for node in nodes)


@given(STACKS, st.integers(1, 12), st.sampled_from([0.0, 0.01, 0.2]))
def test_innermost_frames_sum_to_the_whole_whatever_is_folded(
    given_stacks: list, most: int, least_share: float
) -> None:
    stacks = [stack(*names, count=count) for names, count in given_stacks]
    whole = sum(each.count for each in stacks)
    for nodes in (callers_of(tree(*stacks)), folded(callers_of(tree(*stacks)), most, least_share).nodes):
        assert sum(node.total for node in nodes if node.parent == 0) == whole == sum(node.own for node in nodes)
        below: Counter[int] = Counter()
        for node in nodes:
            below[node.parent] += node.total
        assert all(below[place] <= node.total for place, node in enumerate(nodes))
