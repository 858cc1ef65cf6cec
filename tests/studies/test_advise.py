"""Advice, drawn: what saves how much, how sure that is, how it is ranked, what goes together, what is stored."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pandas as pd
import pytest

from overhead_lens.comparison.difference import compare_budgets
from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.machine.request import QUICK, Request
from overhead_lens.report.forms import to_html, to_json, to_markdown, to_pandas, to_text
from overhead_lens.report.outlines.advice import _together
from overhead_lens.studies.advise import record as recorded
from overhead_lens.studies.advise.analysis import (
    Advice,
    Together,
    TriedRemedy,
    go_together,
    make_advice,
    not_worth_it,
    tried_remedies,
    verdict_of,
)
from overhead_lens.studies.advise.stored import BASE, AdviceMeta, Listed, Trial, Tried
from overhead_lens.target import parse_target
from overhead_lens.terminal.progress import SILENT
from tests.comparison.budgets import budget
from tests.documents import validated
from tests.drawn.builders import breakdown
from tests.drawn.stacks import CLASSIFIER
from tests.excerpts import assert_shows, excerpt

CALL = breakdown(python=600, dispatcher=300, kernel=100)


def listed(name: str, safety: str = "safe", group: str = "") -> Listed:
    return Listed(name, f"{name} helps", f"with {name}(): ...", safety, ["python"], "https://source", group)


def tried(name: str, output: str = "equal", status: str = "measured", **fields: Any) -> Tried:
    trial = {key: fields.pop(key) for key in ("reason", "loses_gradient") if key in fields}
    return Tried(listed(name, **fields), Trial(status, output=output, **trial))


def rows(times: Mapping[str, Sequence[float]], first: int = 0) -> pd.DataFrame:
    """Three blocks of ten calls of each way in each process: its ns per call."""
    return pd.DataFrame(
        [
            {
                "process": first + process,
                "rung": name,
                "block": block,
                "calls": 10,
                "wall_ns": 10 * ns,
                "reference_ns": 600,
            }
            for name, values in times.items()
            for process, ns in enumerate(values)
            for block in range(3)
        ]
    )


BASES = [1_000.0, 1_100.0, 900.0, 1_050.0, 950.0]


def near(values: Sequence[float], *changes: float) -> list[float]:
    """Times changed by thousandths, which are ns at a call of 1000 ns."""
    return [value * (1 + change / 1_000) for value, change in zip(values, changes, strict=True)]


def times_of(values: Sequence[float], *factors: float) -> list[float]:
    return [value * factor for value, factor in zip(values, factors, strict=True)]


def by_name(found: Sequence[TriedRemedy]) -> dict[str, TriedRemedy]:
    return {each.remedy: each for each in found}


def test_a_saving_is_paired() -> None:
    faster, same = (0.8, 0.79, 0.81, 0.795, 0.805), (1.001, 0.998, 1.003, 0.999, 1.0)
    table = rows({BASE: BASES, "a": times_of(BASES, *faster), "b": times_of(BASES, *same)})
    found = by_name(tried_remedies([tried("a"), tried("b")], table))
    wall = found["a"].wall
    assert wall is not None
    assert (wall.base_ns, wall.delta_ns) == (1_000, pytest.approx(-200))
    assert (wall.new_ns, wall.ratio) == (pytest.approx(800), pytest.approx(0.8))
    # Student's t with four degrees of freedom on the standard error of shares, at the median call as it is.
    half = 2.776 * (250 / 4 / 5) ** 0.5
    assert wall.ci95_ns == (pytest.approx(-200 - half, rel=1e-3), pytest.approx(-200 + half, rel=1e-3))
    assert (found["a"].verdict, found["b"].verdict) == ("faster", "same")


def test_one_needs_two_processes_and_the_call_as_it_is_beside_it() -> None:
    alone = rows({"own": [500.0, 510.0]}, first=1_000)
    table = pd.concat([rows({BASE: BASES, "once": BASES[:1]}), alone], ignore_index=True)
    found = by_name(tried_remedies([tried("once"), tried("own")], table))
    for name in ("once", "own"):
        assert (found[name].status, found[name].reason) == ("failed", "fewer than two processes could time it")
    both = pd.concat([table, rows({BASE: [2_000.0, 2_010.0, 1_990.0]}, first=1_000)], ignore_index=True)
    wall = by_name(tried_remedies([tried("own")], both))["own"].wall
    assert wall is not None
    assert wall.base_ns == 2_005
    assert wall.delta_ns == pytest.approx(-2_005 * (1_500 / 2_000 + 1_500 / 2_010) / 2)


def test_three_processes_of_different_speed_tell_a_large_saving() -> None:
    bases = [300_000.0, 366_000.0, 330_000.0]
    useless = {f"r{number}": times_of(bases, 1.01, 0.98, 1.0) for number in range(15)}
    table = rows({BASE: bases, "at_once": times_of(bases, 0.0131, 0.0129, 0.013), **useless})
    found = tried_remedies([tried(name) for name in ("at_once", *useless)], table)
    assert [each.remedy for each in found if each.helps] == ["at_once"]


def test_a_rare_collection_of_garbage_counts_as_its_mean() -> None:
    told = rows({"base": BASES, "gc_rarely": BASES})
    at = (told["rung"] == "base") & (told["block"] == 1)
    told["collected_ns"] = 0
    told.loc[at, ["wall_ns", "collected_ns"]] += 3 * 10 * 250
    told.loc[told["rung"] == "gc_rarely", ["wall_ns", "collected_ns"]] += 3
    one = by_name(tried_remedies([tried("gc_rarely")], told))["gc_rarely"]
    assert one.wall is not None
    assert one.wall.base_ns == 1_000 + 250
    shares = [(base + 0.3) / (base + 250) - 1 for base in BASES]
    assert one.wall.delta_ns == pytest.approx(sum(shares) / 5 * 1_250)
    assert one.verdict == "faster"


def test_useless_remedies_are_seldom_called_faster() -> None:
    draw = random.Random(20_260_104)
    called = 0
    for _ in range(40):
        names = [f"r{number}" for number in range(20)]
        times = {name: [value + draw.gauss(0, 20) for value in BASES] for name in (BASE, *names)}
        called += any(each.helps for each in tried_remedies([tried(name) for name in names], rows(times)))
    # 40 families at a level of 2.5 % each: more than four have a probability below 0.5 %.
    assert called <= 4


@pytest.mark.parametrize(
    ("safety", "output", "loses", "shown"),
    [
        ("safe", "equal", False, "safe"),
        ("safe", "close", False, "safe"),
        ("safe", "equal", True, "changes_semantics"),
        ("safe", "differs", False, "changes_semantics"),
        ("safe", "unknown", False, "changes_semantics"),
        ("unsafe", "equal", False, "unsafe"),
        ("unsafe", "differs", False, "unsafe"),
    ],
)
def test_what_changes_the_output_is_not_safe(safety: str, output: str, loses: bool, shown: str) -> None:
    (found,) = tried_remedies(
        [tried("a", output, safety=safety, loses_gradient=loses)], rows({BASE: BASES, "a": BASES})
    )
    assert found.safety == shown


def test_what_was_not_measured_keeps_its_own_safety_and_reason() -> None:
    (found,) = tried_remedies([tried("a", "unknown", "not_applicable", reason="no device")], rows({BASE: BASES}))
    assert (found.safety, found.reason, found.wall, found.verdict) == ("safe", "no device", None, None)


def advice(*remedies: Tried, times: Mapping[str, Sequence[float]], captured: Any = {}, **meta: Any) -> Advice:
    made = AdviceMeta(subject=CALL.subject, tried=list(remedies), **meta)
    return make_advice(made, rows({BASE: BASES, **times}), CALL, captured, None, "somewhere")


def test_the_best_come_first_then_what_does_nothing_then_what_harms_then_the_rest() -> None:
    times = {name: near(BASES, *(step + at for at in range(5))) for name, step in (("c", -50), ("a", -300), ("e", 200))}
    made = advice(
        *(tried("z", status="not_applicable", reason="no"), tried("f", status="failed", reason="it died")),
        *(tried(name) for name in ("e", "d", "c", "a")),
        times={**times, "d": BASES},
    )
    assert [each.remedy for each in made.remedies] == ["a", "c", "d", "e", "f", "z"]
    assert made.sentence == "90% of the call is overhead; a saves 298 ns (30%)."
    assert made.remedy("e").verdict == "slower"


def test_categories_are_of_the_walls_that_were_timed_side_by_side() -> None:
    new = breakdown(python=300, dispatcher=300, kernel=100)
    made = advice(tried("a"), times={"a": near(BASES, *(5 * [-300]))}, captured={"a": new})
    assert {name: ns for name, ns in made.remedy("a").host if ns} == {"python": -300}
    assert sum(ns for _, ns in made.remedy("a").host) == -300
    assert made.warnings == ()
    by_trace = replace(new, host=tuple(replace(each, evidence="trace") for each in new.host))
    made = advice(tried("a"), times={"a": near(BASES, *(5 * [-300]))}, captured={"a": by_trace})
    assert made.remedy("a").host == ()
    assert made.warnings == ("no categories of a: its trace cannot be compared with the call's samples",)


@pytest.mark.parametrize(
    ("kernel", "verdict"),
    [(0, "overhead"), (299, "overhead"), (300, "mixed"), (699, "mixed"), (700, "work"), (1_000, "work")],
)
def test_is_there_anything_to_gain(kernel: int, verdict: str) -> None:
    base = breakdown(python=1_000 - kernel, kernel=kernel)
    assert verdict_of(base) == (verdict, pytest.approx(1 - kernel / 1_000))


def test_waiting_is_no_work_of_kernels() -> None:
    meta = AdviceMeta(subject=CALL.subject, tried=[tried("a")])
    said = [
        make_advice(
            meta, rows({BASE: BASES, "a": BASES}), breakdown(python=100, **times), {}, None, "somewhere"
        ).sentence
        for times in ({"kernel": 900}, {"kernel": 100, "wait": 800}, {"wait": 100})
    ]
    assert [sentence.partition(";")[0] for sentence in said] == [
        "not overhead: 90% of the call is the kernels' own work",
        "not overhead: 90% of the call is the kernels' own work and waiting",
        "50% of the call is overhead, the rest the kernels' own work and waiting",
    ]


def test_a_remedy_for_a_small_category_is_not_tried() -> None:
    base = breakdown(python=900, guard=15, kernel=85)
    assert not_worth_it(["guard"], base) == "guard takes 1.5% of the call"
    assert not_worth_it(["guard", "compile"], base) == "guard, compile take 1.5% of the call"
    assert not_worth_it(["guard", "kernel"], base) == ""


@pytest.mark.parametrize(
    ("new_ns", "verdict", "begins"), [(9_000, "faster", "confirmed"), (10_000, "same", "not confirmed")]
)
def test_only_a_remedy_that_is_faster_in_turns_is_confirmed(new_ns: int, verdict: str, begins: str) -> None:
    delta = compare_budgets(budget(0.001, python=10_000), budget(0.001, python=new_ns))
    assert delta.verdict == verdict
    line = _together(Together(("no_grad",), delta))
    assert line.startswith(f"{begins}, in turns with the call as it is: no_grad: ")
    assert line.endswith(f": {verdict}")


def test_the_best_of_each_group_go_together_but_for_the_unsafe() -> None:
    times = {
        name: near(BASES, *(5 * [step]))
        for name, step in (("a", -100), ("b", -200), ("c", -300), ("d", -400), ("e", 0))
    }
    found = tried_remedies(
        [tried("a"), tried("b"), tried("c", safety="unsafe"), tried("d", "differs"), tried("e")],
        rows({BASE: BASES, **times}),
    )
    assert go_together(found, {"a": "one", "b": "one"}) == ["b"]
    assert go_together(found, {"a": "one", "b": "two"}) == ["b", "a"]
    assert go_together(found, {}) == ["b", "a"]


def test_nothing_helps() -> None:
    made = advice(tried("a"), times={"a": BASES}, repeats=False)
    assert made.sentence == "90% of the call is overhead; nothing that was tried makes it faster beyond doubt."
    assert made.warnings == (
        "outputs are unknown: called twice, it gives another answer; what a remedy changes is unknown",
    )


def test_the_forms_of_advice() -> None:
    made = advice(
        tried("a"), tried("<b>|`", status="failed", reason="it\x1b[31m died"), times={"a": near(BASES, *(5 * [-300]))}
    )
    document = validated(to_json(made))
    assert document["schema"] == "overhead-lens/advice/1"
    assert document["remedies"][0]["wall"] == {
        "base_ns": 1000.0,
        "new_ns": 700.0,
        "delta_ns": -300.0,
        "ci95_ns": [-300.0, -300.0],
        "ratio": 0.7,
    }
    assert (document["verdict"], document["overhead_share"], document["together"]) == ("overhead", 0.9, None)
    assert to_pandas(made).loc["a", "delta_ns"] == pytest.approx(-300)
    text = to_text(made)
    assert "+300 ns" in text
    assert "\x1b" not in text
    markdown = to_markdown(made)
    assert "| a | +300 ns | +30.0% | +300 ns .. +300 ns | faster | equal | safe | `with a(): ...` |" in markdown
    assert "<b>" not in to_html(made).replace("&lt;b&gt;", "")


def test_the_report_begins_with_the_verdict_and_the_best() -> None:
    remedies = {"inference_mode": near(BASES, *(5 * [-300])), "guard_filter_all": near(BASES, *(5 * [-50]))}
    made = advice(*map(tried, remedies), times=remedies)
    assert_shows(to_text(made), excerpt("docs/guide/advise.md", "advice"))


def test_the_table_says_how_whatever_the_name_is() -> None:
    name = "a_remedy_of_the_user_whose_name_is_longer_than_a_column"
    made = advice(tried(name), times={name: near(BASES, *(5 * [-300]))})
    assert f"| `with {name}(): ...` |" in to_markdown(made)


def recording_in(folder: Path) -> recorded._Recording:
    request = Request(
        target=parse_target("add1", None),
        params={},
        compile_options=None,
        output=None,
        parent=folder,
        timeout_s=1.0,
        effort=QUICK,
    )
    return recorded._Recording(request, None, folder, CLASSIFIER, SILENT)


def dying(name: str, answers: int) -> Any:
    """A process that times so many blocks and is dead then."""
    blocks = iter(range(answers))

    def ask(*_: object, **__: object) -> object:
        if next(blocks, None) is None:
            raise MeasurementError(f"{name} died")
        row = {"block": 0, "calls": 1, "wall_ns": 1_000, "collected_ns": 0, "reference_ns": 600, "minor_faults": 0}
        row |= {"delayed_ns": 300}
        return SimpleNamespace(use_threads=False, rows=[row], reasons={})

    return SimpleNamespace(name=name, ask=ask)


def test_what_dies_while_it_is_timed_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    recording = recording_in(tmp_path)
    recording._time_round(1_000, {BASE: dying(BASE, 99), "one": dying("one", 2), "other": dying("other", 99)})
    assert Counter(row["rung"] for row in recording.rows) == {BASE: 15, "one": 2, "other": 15}
    assert {row["wall_ns"] for row in recording.rows} == {700}
    assert recording.trials == {"one": Trial("failed", "one died")}
    with pytest.raises(MeasurementError, match="base died"):
        recording._time_round(1_001, {BASE: dying(BASE, 3), "other": dying("other", 99)})
    recording.rows.clear()
    recording._time_in(dying("screen-1", 0), 1)
    recording._time_in(dying("screen-2", 1), 2)
    assert [row["process"] for row in recording.rows] == [2]
    assert recording.warnings == ["savings are of one process fewer: screen-1 died"]


@pytest.mark.parametrize("graph_breaks", [False, True])
def test_a_call_whose_graph_breaks_shares_no_process(graph_breaks: bool, tmp_path: Path) -> None:
    environment = msgspec.structs.replace(listed("threads"), variables={"OMP_NUM_THREADS": "1"})
    kernels = msgspec.structs.replace(listed("kernels"), shrinks=["wait"])
    outlasting = msgspec.structs.replace(listed("outlasting"), own_process=True)
    remedies = [listed("one"), environment, outlasting, kernels, listed("other")]
    worker = SimpleNamespace(ask=lambda _, name: Trial("not_applicable" if name == "other" else "measured", name))
    recording = recording_in(tmp_path)
    recording.catalog = recorded.Catalog(remedies, True, "", graph_breaks)
    recording._choose(worker, CALL)  # type: ignore[arg-type]
    assert recording.own == (["one", "threads", "outlasting"] if graph_breaks else ["threads", "outlasting"])
    assert recording.trials["kernels"].status == "not_applicable"
    assert recording._shared() == ([] if graph_breaks else ["one", "other"])


def test_what_dies_while_it_is_chosen_is_given_up_and_the_others_go_on_in_a_fresh_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["one", "deadly", "other"]
    recording = recording_in(tmp_path)
    recording.catalog = recorded.Catalog(
        [msgspec.structs.replace(listed(name), own_process=True) for name in names], True, "", False
    )
    asked: list[list[str]] = []

    def start(_: str) -> Any:
        process: list[str] = []
        asked.append(process)

        def ask(_: object, name: str) -> Trial:
            process.append(name)
            if name == "deadly":
                raise MeasurementError(f"{name} died")
            return Trial("measured")

        return SimpleNamespace(ask=ask, end=lambda: process.append("ended"))

    monkeypatch.setattr(recorded._Recording, "_start", lambda _, name: start(name))
    monkeypatch.setattr(recorded._Recording, "_load", lambda *_: None)
    recording._first_worker(CALL)
    assert asked == [["one", "deadly", "ended"], ["other"]]
    assert (recording.own, recording.trials["deadly"]) == (["one", "other"], Trial("failed", "deadly died"))


def test_what_does_not_go_with_better_remedies_is_left_out(tmp_path: Path) -> None:
    asked: list[list[str]] = []
    trials = {"undoes": Trial("not_applicable"), "wrong": Trial("measured", output="differs")}

    def ask(_: object, names: list[str]) -> Trial:
        asked.append(names)
        return trials.get(names[-1], Trial("measured", output="unknown"))

    worker: Any = SimpleNamespace(ask=ask)
    names = ["best", "undoes", "good", "wrong"]
    assert recording_in(tmp_path)._fitting(worker, names) == ["best", "good"]
    assert asked == [["best", "undoes"], ["best", "good"], ["best", "good", "wrong"]]


WRONG = "call:work gives a wrong result: AssertionError; nothing was timed"


@pytest.mark.parametrize(
    ("evidence", "names"),
    [
        ("samples", ["clock", "page_faults", "samples"]),
        ("trace", ["clock", "page_faults", "trace", "calibration"]),
    ],
)
def test_a_remedy_is_captured_by_the_evidence_that_divides_the_call_as_it_is(
    evidence: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(recorded, "record", lambda *_, instruments: made.extend(each().name for each in instruments))
    recording = recording_in(tmp_path)
    recording.catalog = recorded.Catalog([listed("one")], True, "", False)
    recording._capture("one", evidence)
    assert (made, recording.captured) == (names, ["one"])


def test_a_wrong_result_under_a_remedy_costs_no_more_than_this_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object, **__: object) -> Any:
        raise UsageError(WRONG)

    recording = recording_in(tmp_path)
    recording.catalog = recorded.Catalog([listed("one"), listed("other")], True, "", False)
    with recording._giving_up("one"):
        wrong()
    assert recording.trials == {"one": Trial("failed", WRONG)}
    with pytest.raises(UsageError), recording._giving_up(BASE):
        wrong()
    for name in ("record", "record_pair"):
        monkeypatch.setattr(recorded, name, wrong)
    recording._capture("one", "samples")
    recording._confirm(["one"])
    monkeypatch.setattr(recorded._Recording, "_start", wrong)
    recording._confirm(["one", "other"])
    assert recording.warnings == [
        f"no categories of one: {WRONG}",
        f"one could not be measured together: {WRONG}",
        f"one and other could not be measured together: {WRONG}",
    ]
    assert (recording.captured, recording.together) == ([], [])
