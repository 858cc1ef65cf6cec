"""The terminal report of a drawn budget, letter by letter; a mismatch leaves a `.got` beside the golden file."""

from __future__ import annotations

import io
import json
import math
import random
import re
from dataclasses import replace

import pytest
from rich.console import Console

from overhead_lens.budget.model import (
    Breakdown,
    Closure,
    CompileNote,
    CrossCheck,
    Floor,
    Guard,
    GuardTree,
    Operator,
    Reading,
)
from overhead_lens.comparison.factors import make_factors
from overhead_lens.comparison.model import CategoryChange, Contributor, Delta
from overhead_lens.documents.breakdown import breakdown_document
from overhead_lens.documents.delta import delta_document
from overhead_lens.report.forms import print_text
from overhead_lens.report.outlines.breakdown import breakdown_outline, sentence
from overhead_lens.report.text.blocks import call_title, counted, left_out, side_titles
from overhead_lens.stats.estimate import range_of
from overhead_lens.taxonomy.host import Frame
from overhead_lens.units import format_signed_ns
from tests.comparison.layers import sides
from tests.documents import validated
from tests.drawn.builders import breakdown
from tests.report.goldens import expect


def printed(made: Breakdown | Delta, *, whole: bool = False) -> str:
    console = Console(file=io.StringIO(), width=100, highlight=False, markup=False, emoji=False, color_system=None)
    print_text(console, made, whole=whole)
    text: str = console.file.getvalue()
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def reading(ns: float, spread_ns: float) -> Reading:
    return Reading(ns, (ns - spread_ns, ns + spread_ns))


def of_few(processes: int) -> Breakdown:
    """A budget of few processes, whose wall has their range."""
    made = breakdown(python=7_000, kernel=3_000)
    wall = replace(made.wall, ci95_ns=(9_500.0, 11_000.0), processes=processes, interval=range_of(processes))
    return replace(made, wall=wall)


def test_the_range_of_few_processes_is_said() -> None:
    text = printed(of_few(3)).splitlines()
    assert text[0].endswith("10.00 µs per call [9.50 µs .. 11.00 µs, the range of 3 processes]")
    (total,) = [line for line in text if line.startswith("sum = wall")]
    assert total.endswith("9.50 µs .. 11.00 µs (range)")
    document = validated(of_few(3).to_json())
    assert (document["wall"]["ci95_ns"], document["wall"]["interval"]) == ([9_500.0, 11_000.0], "range of 3 processes")


def test_the_range_of_few_processes_is_said_on_pages_and_in_notebooks() -> None:
    for shown in (of_few(2).to_html(), of_few(2)._repr_html_()):
        assert "9.50 µs .. 11.00 µs (range)</td>" in shown
        assert "[9.50 µs .. 11.00 µs, the range of 2 processes]" in shown


def full() -> Breakdown:
    """A budget in which every field holds something."""
    made = breakdown({"python": {"user": 3_000, "binding": 4_000}}, python=7_000, guard=2_000, kernel=1_000)
    tree = Operator(
        "add1:add1",
        10_000,
        9_000,
        {"python": 7_000, "guard": 2_000},
        (Operator("aten::add", 1_000, 1_000, {"kernel": 1_000}),),
    )
    return replace(
        made,
        subject=replace(made.subject, compile=True),
        wall=replace(made.wall, floor_ns=12.5, floor=Floor(12.5, "memory", "L2", 8e8, 8e10)),
        closure=Closure(10_000, 0, 9_800, -0.02, 10_100),
        operators=tree,
        units=100,
        guards=(
            Guard("TENSOR_MATCH L['x']", 1_500.0, 33.04, (30.0, 35.0), 4_600.0, "add1.py:52 in add1: return x + 1"),
            Guard("GLOBAL_STATE", 500.0),
        ),
        guard_tree=GuardTree(640.0, (630.0, 655.5), 27_000.0),
        compile_notes=(CompileNote("graph break", "add1.py:53", "print"),),
        cross_checks=(
            CrossCheck("guard", reading(2_000.0, 50.0), reading(1_900.04, 70.0), reading(2_100.0, 99.0), agree=True),
            CrossCheck("allocation", reading(900.0, 8.0), None, reading(88.0, 3.0), agree=True, bound="lower"),
            CrossCheck("kernel", reading(1_000.0, 9.0), None, reading(77.0, 2.0), agree=False, bound="upper"),
        ),
        warnings=("only 3 clock processes",),
        environment={"torch": "2.9", "gpu": None},
        capture="traces/drawn",
    )


def difference(base: Breakdown, new: Breakdown, verdict: str = "slower", moved: str = "checked_add") -> Delta:
    """``new`` less ``base``: every category that grew is slower, with one frame that did it."""
    host = tuple(
        CategoryChange(
            old.category,
            recent.ns - old.ns,
            (0.9 * (recent.ns - old.ns), 1.1 * (recent.ns - old.ns)),
            verdict if recent.ns != old.ns else "same",
            (Contributor("frame", moved, recent.ns - old.ns),) if recent.ns != old.ns else (),
        )
        for old, recent in zip(base.host, new.host, strict=True)
    )
    grown = new.wall.ns - base.wall.ns
    return Delta(
        base=base,
        new=new,
        verdict=verdict,
        margin_share=0.01,
        wall_delta_ns=grown,
        wall_ci95_ns=(0.9 * grown, 1.1 * grown),
        ratio=new.wall.ns / base.wall.ns if base.wall.ns else None,
        host=host,
        blame=tuple(change.category for change in host if change.delta_ns),
        sentence=f"the call is {verdict}: {moved} moved",
        detectable_share=0.012345678,
        warnings=("base: only 3 clock processes",),
    )


def test_report() -> None:
    expect("report.txt", printed(full()))


@pytest.mark.parametrize(
    ("floor_ns", "said"),
    [
        (0.0, ""),
        (0.03, " The work itself needs less than 1 ns."),
        (1.0, " The work itself needs at least 1 ns: the call takes 10,000x that."),
        (5_000.0, " The work itself needs at least 5.00 µs: the call takes 2.0x that."),
    ],
)
def test_how_much_the_work_needs(floor_ns: float, said: str) -> None:
    made = breakdown({}, kernel=10_000)
    found = sentence(replace(made, wall=replace(made.wall, floor_ns=floor_ns, floor=None)))
    assert found == f"kernel dominates: 100% of the call, led by kernel_frame (file.py) (10.00 µs).{said}"


def test_a_torch_that_names_no_lines_is_said_to() -> None:
    note = "this torch does not tell which line of the source needed a guard\n"
    nameless = replace(full(), guards=tuple(replace(guard, cause=None) for guard in full().guards))
    assert note in printed(nameless)
    assert note not in printed(full())


def test_a_call_that_was_compiled_before_is_said_to_be() -> None:
    """It is not eager, and its guards are not listed for another reason than the version of torch."""
    made = full()
    guards = (Guard("TENSOR_MATCH", 1_500.0), Guard("GLOBAL_STATE", 500.0))
    before = printed(replace(made, subject=replace(made.subject, compile=False), guards=guards, guard_tree=None))
    assert before.startswith("drawn, with compiled code, cpu ")
    assert "whose guards are not listed one by one: measure the uncompiled function with --compile" in " ".join(
        before.split()
    )
    assert "this torch does not tell" not in before


def test_difference() -> None:
    slower = breakdown(python=7_000, guard=2_000, allocation=3_000, kernel=1_000)
    expect("difference.txt", printed(difference(replace(full(), units=1), slower)))


@pytest.mark.parametrize(
    ("interval", "verdict", "shown", "marked"),
    [
        ((-10_000.0, 7_000.0), "faster", "faster*", True),
        ((-10_000.0, -1.0), "faster", "faster", False),
        ((1.0, 7_000.0), "slower", "slower", False),
        ((-10_000.0, 7_000.0), "inconclusive", "inconclusive", False),
    ],
)
def test_a_verdict_that_its_interval_does_not_show_says_where_it_is_from(
    interval: tuple[float, float], verdict: str, shown: str, *, marked: bool
) -> None:
    delta = difference(breakdown(python=7_000), breakdown(python=6_000))
    changed = replace(delta.host[0], ci95_ns=interval, verdict=verdict, contributors=(), in_frames_ns=-3_930)
    text = printed(replace(delta, host=(changed, *delta.host[1:])))
    (row,) = [line.rstrip() for line in text.splitlines() if line.startswith("python")]
    assert re.search(rf" {re.escape(format_signed_ns(interval[1]))} +{re.escape(shown)}$", row)
    note = "* not by its own interval, but by frames that are known to have moved: python -3.93 µs\n"
    assert (note in text) is marked


@pytest.mark.parametrize(
    ("old", "recent", "told"),
    [
        ({"torch": "2.13.0"}, {"torch": "2.15.0"}, ("torch 2.13.0", "torch 2.15.0")),
        ({"python": "3.11.7", "host": "a"}, {"python": "3.12.1", "host": "b"}, ("Python 3.11.7", "Python 3.12.1")),
        ({"git_commit": "a1"}, {"git_commit": "b\x1b2"}, ("a1", "b\\x1b2")),
    ],
)
def test_sides_of_one_call_are_told_apart(old: dict[str, str], recent: dict[str, str], told: tuple[str, str]) -> None:
    base, new = breakdown(python=7_000), breakdown(python=6_000)
    same = call_title(base)
    assert side_titles(base, new) == (same, same)
    sides = replace(base, environment=old), replace(new, environment=recent)
    assert side_titles(*sides) == (f"{same}, {told[0]}", f"{same}, {told[1]}")


def test_a_narrow_terminal_cuts_no_figure() -> None:
    slower = breakdown(python=7_000, guard=2_000, allocation=3_000, kernel=1_000)
    text = printed(difference(replace(full(), units=1), slower, moved="at::native::" + 40 * "x"))
    (row,) = [line for line in text.splitlines() if line.startswith("allocation")]
    assert "0 ns   3.00 µs    +3.00 µs  +2.70 .. +3.30 µs  slower" in row


def test_factors() -> None:
    base, new = sides()
    expect("factors.txt", printed(replace(difference(base, new), factors=make_factors(base, new))))
    document = validated(delta_document(replace(difference(base, new), factors=make_factors(base, new))).to_json())
    expect("factors.json", json.dumps(document["factors"], indent=1) + "\n")


def test_a_document_of_a_compiled_call() -> None:
    text = breakdown_document(full()).to_json()
    expect("breakdown.json", f"{text}\n")
    document = validated(text)
    assert [check["ablation_bound"] for check in document["cross_checks"]] == [None, "lower", "upper"]


def test_a_document_of_a_difference() -> None:
    eager = breakdown(python=7_000, guard=2_000, allocation=3_000, kernel=1_000)
    text = delta_document(difference(full(), eager)).to_json()
    expect("difference.json", f"{text}\n")
    document = validated(text)
    assert list(document["new"]) == list(document["base"])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_json_has_no_number_for_is_text(value: float) -> None:
    made = breakdown(python=7_000)
    odd = replace(made, subject=replace(made.subject, params={"beta": value, "size": 0.5}))
    assert validated(breakdown_document(odd).to_json())["subject"]["params"] == {"beta": str(value), "size": 0.5}


def hostile(name: str) -> Breakdown:
    """A budget that holds ``name`` wherever a name comes from outside."""
    made = breakdown(python=100, kernel=100, scenario=f"{name}1")
    first = replace(made.host[0], top=(Frame(f"{name}2", 100),))
    child = Operator(f"{name}3", 100, 100, {"kernel": 100}, called_from=f"{name}4")
    return replace(
        made,
        subject=replace(made.subject, params={f"{name}5": f"{name}6"}),
        host=(first, *made.host[1:]),
        guards=(Guard(f"{name}7", 10.0),),
        operators=Operator(f"{name}8", 200, 100, {"python": 100}, (child,)),
        warnings=(f"{name}9",),
        capture=f"{name}a",
    )


def test_names_are_never_markup() -> None:
    text = printed(hostile("[bold]x[/]:tada:"), whole=True)
    for mark in "123456789a":
        assert f"[bold]x[/]:tada:{mark}" in text
    moved = printed(difference(breakdown(python=100), hostile("[red]y"), moved="[bold]x[/]:tada:"))
    assert "+100 ns [bold]x[/]:tada:" in moved
    assert "[red]y1" in moved


def test_names_are_never_obeyed() -> None:
    text = printed(hostile("\x1b[2J\n"), whole=True)
    assert "\x1b" not in text
    for mark in "123456789a":
        assert f"\\x1b[2J\\n{mark}" in text
    assert "\x1b" not in printed(difference(breakdown(python=100), hostile("\x1b[2J"), moved="\x1b[2J"))


def test_nothing_measured() -> None:
    text = printed(breakdown())
    assert "Nothing was measured." in text
    assert "unattributed" in printed(difference(breakdown(), breakdown(unattributed=5)))


@pytest.mark.parametrize("seed", range(8))
def test_every_guard_is_shown_or_counted(seed: int) -> None:
    drawn = random.Random(seed)
    guards = tuple(Guard(f"KIND_{number}", drawn.uniform(1, 1_000), 5.0) for number in range(drawn.randint(1, 120)))
    text = printed(replace(full(), guards=guards, guard_tree=drawn.choice([None, full().guard_tree])))
    shown = sum(guard.guard in text.split() for guard in guards)
    more = re.search(r"^ +(\d+) more$", text, re.MULTILINE)
    cheaper = re.search(r"(\d+) cheaper guards? (?:is|are) left out; --json has (?:it|them)\.", text)
    assert shown == min(6, len(guards))
    assert int(more[1] if more else 0) == min(40, len(guards)) - shown
    assert int(cheaper[1] if cheaper else 0) == max(0, len(guards) - 40)


def test_one_that_is_left_out_is_in_the_singular() -> None:
    assert left_out(1, "rank", " in between") == ["1 rank in between is left out; --json has it."]
    assert left_out(1_200, "cheaper guard") == ["1,200 cheaper guards are left out; --json has them."]
    assert left_out(0, "row") == []
    assert [counted(1, noun) for noun in ("process", "launch")] == ["1 process", "1 launch"]
    assert [counted(2_000, noun) for noun in ("process", "launch")] == ["2,000 processes", "2,000 launches"]
    assert left_out(1, "further series") == ["1 further series is left out; --json has it."]
    assert counted(2, "series") == "2 series"
    one = breakdown(python=5)
    outline = breakdown_outline(replace(one, wall=replace(one.wall, processes=1, blocks=1, calls=1)))
    assert outline.about == ["size=10 · 1 process, 1 block, 1 call, unprofiled"]


def operators(drawn: random.Random, total_ns: int, depth: int, names: list[str]) -> Operator:
    """A tree whose children take no more than their parent; the names it has are put into ``names``."""
    names.append(f"aten::op{len(names)}")
    name, left_ns, children = names[-1], total_ns, []
    for _ in range(drawn.randint(0, 12) if depth else 0):
        children.append(operators(drawn, round(left_ns * drawn.choice([0.001, 0.01, 0.03, 0.2])), depth - 1, names))
        left_ns -= children[-1].total_ns
    return Operator(name, total_ns, left_ns, {"python": left_ns}, tuple(children))


@pytest.mark.parametrize("seed", range(8))
def test_every_operator_is_shown_or_counted(seed: int) -> None:
    drawn, names = random.Random(seed), list[str]()
    children = [operators(drawn, ns, 3, names) for ns in (400_000, 300_000, 200_000)]
    text = printed(
        replace(full(), operators=Operator("root", 1_000_000, 100_000, {"python": 100_000}, tuple(children)))
    )
    shown = sum(name in text.split() for name in names)
    less = re.search(r"^ *([\d,]+) with less time", text, re.MULTILINE)
    rest = re.search(r"^Without ([\d,]+) operators? of still less time\.$", text, re.MULTILINE)
    counts = [int(found[1].replace(",", "")) for found in (less, rest) if found]
    assert (shown + sum(counts), shown <= 60) == (len(names), True)
