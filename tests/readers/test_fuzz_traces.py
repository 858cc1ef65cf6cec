"""The fuzzer: its seeds are sound traces of all kinds, its inputs reproducible, and what it finds is found and shortened."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.traces.analyzer import Analyzer
from scripts.validation import trace_checks
from scripts.validation.fuzz_traces import Found, Tally, make_input, result_of, run, run_batch
from scripts.validation.trace_checks import ANALYZED, DEFECT, REFUSED, check, shortened
from scripts.validation.trace_mutations import CONTAINERS, MUTATIONS, mutated
from scripts.validation.trace_seeds import generated_seeds, recorded_seeds
from tests.drawn.trace_text import document, event, written

SEEDS = generated_seeds()


@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_is_a_trace_that_is_analyzed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(SEEDS[name])
    outcome = check(path, 64, thorough=True)
    assert (outcome.verdict, outcome.defect) == (ANALYZED, None)
    assert {"truncated", "damaged_event", "bad_timestamp", "bad_duration"} & set(outcome.analysis.issues) == set()


def test_the_seeds_hold_every_kind_of_event(tmp_path: Path) -> None:
    categories, phases = set(), set()
    for data in SEEDS.values():
        path = tmp_path / "t.json"
        path.write_bytes(data)
        categories |= set(read_trace(path).events["cat"].unique())
        entries = json.loads(data)
        entries = entries if isinstance(entries, list) else entries["traceEvents"]
        phases |= {entry.get("ph") for entry in entries}
    assert phases == {"X", "M", "i", "s", "f", "B", "E", "C", None}
    assert categories == {
        "", "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset",
        "cuda_sync", "gpu_user_annotation", "overhead", "mtia_runtime", "mtia_ccp_events", "cuda_profiler_range", "Trace",
        "Operator", "Runtime", "Kernel", "Memcpy",
    }  # fmt: skip


def test_recorded_traces_are_cut_down(tmp_path: Path) -> None:
    launches = [event(f"l{number}", "cuda_runtime", correlation=number) for number in range(100)]
    kernels = [event(f"k{number}", "kernel", device=0, correlation=number) for number in range(50, 100)]
    written(tmp_path, document([*launches, *kernels], note="x" * 1_000), "big.json.gz")
    written(tmp_path, "no trace", "other.json")
    written(tmp_path, gzip.compress(b"{}")[:9], "cut.json.gz")
    ((name, data),) = recorded_seeds(tmp_path).items()
    cut = json.loads(data)
    assert (name, "note" in cut) == ("big", False)
    assert [entry["name"] for entry in cut["traceEvents"]] == [
        "l0", "l1", "l2", "l3", "k50", "k51", "k52", "k53", "l50", "l51", "l52", "l53",
    ]  # fmt: skip


def test_an_input_follows_from_seed_and_number() -> None:
    seeds = list(SEEDS.values())
    inputs = [make_input(1, number, seeds) for number in range(20)]
    assert inputs == [make_input(1, number, seeds) for number in range(20)]
    assert len({data for data, *_ in inputs}) == 20
    assert make_input(2, 0, seeds) != inputs[0]


@pytest.mark.parametrize("name", [*MUTATIONS, *CONTAINERS])
def test_a_mutation_changes_most_traces_and_survives_any_text(name: str) -> None:
    mutation = {**MUTATIONS, **CONTAINERS}[name]
    seeds = list(SEEDS.values())
    changed = [mutation(Random(number), seeds[number % len(seeds)], seeds) for number in range(30)]
    assert sum(data != seeds[number % len(seeds)] for number, data in enumerate(changed)) >= 10
    for text in (b"", b"{", b"\xff", b'"', b'{"ph"'):
        for number in range(5):
            assert isinstance(mutation(Random(number), text, seeds), bytes)


def test_mutations_are_named_in_order() -> None:
    data, done = mutated(Random(3), [b"[]"])
    assert (isinstance(data, bytes), set(done) <= {*MUTATIONS, *CONTAINERS}) == (True, True)
    assert len(done) >= 1


def test_hundred_damaged_traces_show_no_defect(tmp_path: Path) -> None:
    tally = run_batch(5, range(100), list(SEEDS.values()), tmp_path / "t.json")
    assert (tally.inputs, tally.defects) == (100, {})
    assert set(tally.verdicts) == {ANALYZED, REFUSED}
    assert tally.verdicts[ANALYZED] > tally.verdicts[REFUSED]


def test_an_error_is_found_counted_and_its_input_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Analyzer.analysis

    def failing(self: Analyzer) -> Any:
        if (self._events["name"] == "aten::addmm").any():
            raise ZeroDivisionError("by a test")
        return whole(self)

    monkeypatch.setattr(trace_checks, "_CLASSIFIER", trace_checks._CLASSIFIER)
    monkeypatch.setattr(Analyzer, "analysis", failing)
    seed = document([event("aten::addmm"), event("aten::mm", ts=20), event("gemm", "kernel", device=0)]).encode()
    tally = run_batch(5, range(4), [seed], tmp_path / "t.json")
    ((key, found),) = tally.defects.items()
    assert (key, found.what, found.message) == ("ZeroDivisionError", "ZeroDivisionError", "by a test")
    assert found.count == tally.verdicts[DEFECT] >= 1
    assert b"aten::addmm" in found.data
    assert len(found.data) < 150


def test_two_ways_that_differ_are_a_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = read_trace(written(tmp_path, document([event("b")]), "other.json"))
    monkeypatch.setattr(trace_checks, "_scanned", lambda *_: other)
    outcome = check(written(tmp_path, document([event("a")])), 64, thorough=False)
    assert (outcome.verdict, outcome.defect.key) == (DEFECT, "the two ways of reading differ in column name")


def test_a_negative_time_is_a_defect() -> None:
    trace_checks._check_numbers({"wall_ns": 0, "delta": -1, "steps": [{"count": 3}]}, "")
    for value in ({"wall_ns": -1}, {"a": [{"self_ns": -1}]}, {"share": float("nan")}, {"events": -2}):
        with pytest.raises(trace_checks.BrokenPromiseError):
            trace_checks._check_numbers(value, "")


def test_shortening_keeps_what_is_needed() -> None:
    data = bytes(range(97, 123)) * 4
    assert shortened(data, lambda text: b"q" in text and text.count(b"z") >= 2) == b"zqz"


def test_a_run_in_its_own_process(tmp_path: Path) -> None:
    seeds = {"old": SEEDS["old"]}
    tally = run(1, 30, 0, list(seeds.values()))
    tally.add_defect("E f", Found("E", "f", "m", 7, ("drop_token",), b"xyz"))
    tally.add_defect("E f", Found("E", "f", "n", 9, ("truncate",), b"xy"))
    result = result_of(tally, 1, 0.5, seeds, tmp_path / "inputs")
    assert json.loads(json.dumps(result))["seeds"] == {"old": len(SEEDS["old"])}
    assert (result["inputs"], sum(result["verdicts"].values())) == (30, 30)
    (defect,) = result["defects"]
    assert (defect["count"], defect["number"], defect["mutations"], defect["bytes"]) == (2, 9, ("truncate",), 2)
    assert (tmp_path / "inputs" / defect["input"]).read_bytes() == b"xy"


def test_an_input_that_kills_its_process_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [SEEDS["old"]]
    monkeypatch.setattr("scripts.validation.fuzz_traces._serve", _die)
    tally = run(1, 1, 0, seeds)
    ((key, found),) = tally.defects.items()
    assert (key, found.number, found.data) == ("killed 3", 0, b"deadly")
    assert isinstance(tally, Tally)


def _die(_: Any, arguments: tuple[Any, ...]) -> None:
    import os

    path = arguments[3]
    path.with_suffix(".number").write_text("0")
    path.write_bytes(b"deadly")
    os._exit(3)
