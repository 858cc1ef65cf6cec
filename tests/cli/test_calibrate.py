"""``overhead-lens calibrate`` with a cache of its own, and the profile of a compiled call that uses what it measured."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from overhead_lens.correction import store, worker
from overhead_lens.instruments.peaks import worker as peaks
from overhead_lens.recorder import calibrate
from tests.cli.run import lens
from tests.compiler import needs_compiler
from tests.documents import validated
from tests.recorder.effort import little_effort
from tests.worker.answering import Answering, answering_here

EVENTS = {"operator_outer", "operator_nested", "annotation", "fast_annotation", "compiled_region", "backward_node"}


@needs_compiler
@pytest.mark.measures
def test_a_compiled_call_is_corrected_by_what_calibrate_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(store, "place", lambda name: kept / name)
    with _measuring_here():
        done = lens("calibrate", "--json", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    calibrated = validated(done.stdout)
    _is_a_calibration(calibrated)
    (file,) = kept.iterdir()
    text = file.read_text()
    with little_effort(processes=2):
        done = lens("profile", "add1", "--compile", "--json", "-o", "out", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    used = json.loads((tmp_path / "out" / "calibration.json").read_text())
    assert (used, used["peaks"]) == (json.loads(text), calibrated["peaks"])
    assert [path.read_text() for path in kept.iterdir()] == [text]
    _has_guards(validated(done.stdout))


@contextlib.contextmanager
def _measuring_here() -> Iterator[None]:
    """Measure all that a calibration consists of in this process, for moments each."""
    few = {"_CALLS": 300, "_CALLS_OF": {"backward": 75, "varied": 20}, "_DISPLACED_CALLS": 40, "_ROUNDS": 3}
    with (
        answering_here(),
        mock.patch.object(Answering, "answers", (":measure_costs", ":describe_runtime", ":measure_peaks")),
        mock.patch.object(store, "PROCESSES", 1),
        mock.patch.object(calibrate, "ALL_FLAGS", ("plain",)),
        mock.patch.multiple(worker, **few),
        mock.patch.multiple(peaks, _STREAM_NS=2_000_000, _GEMM_NS=2_000_000),
    ):
        yield


def _is_a_calibration(document: dict[str, Any]) -> None:
    (costs,) = document["costs"].values()
    assert (set(document["costs"]), set(costs), document["reasons"]) == ({"plain"}, EVENTS, {})
    for cost in costs.values():
        assert 0 <= cost["inside_ns"] <= cost["total_ns"]
    # One process beside other programs may find nothing of what costs little; an operator costs most.
    assert costs["operator_outer"]["total_ns"] > 0
    assert {name for name, cost in costs.items() if cost["after_kernels"]} == {"operator_outer", "compiled_region"}
    levels = [level["level"] for level in document["peaks"]["copy"]]
    assert levels[0] == "L1" and levels[-1] == "DRAM"
    assert min(document["peaks"]["flops_per_s"], *(level["bytes_per_s"] for level in document["peaks"]["copy"])) > 0


def _has_guards(document: dict[str, Any]) -> None:
    assert (document["subject"]["name"], document["subject"]["compile"]) == ("add1", True)
    assert sum(each["ns"] for each in document["host"]) == document["wall"]["ns"] == document["closure"]["sum_ns"]
    ns = {each["category"]: each["ns"] for each in document["host"]}
    assert min(ns["guard"], ns["python"]) > 0
    assert ns["compile"] == 0
