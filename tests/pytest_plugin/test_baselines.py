"""Where a baseline lies, and that what is kept of a capture says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead_lens.comparison.difference import compare_budgets
from overhead_lens.errors import MeasurementError
from overhead_lens.pytest_plugin import baselines
from overhead_lens.pytest_plugin.baselines import keep, place_of
from overhead_lens.stored import budgets_of
from overhead_lens.taxonomy.classifier import default_classifier
from tests.drawn.captures import draw_capture
from tests.drawn.counts import draw_counts
from tests.drawn.timelines import AUTOGRAD, timed
from tests.drawn.trace_text import document, written

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"
FILE = Path("tests/test_ops.py")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    found: dict[str, object] = {"cpu": "AMD EPYC 7763 64-Core Processor", "cores": 4}
    monkeypatch.setattr(baselines, "describe_machine", lambda: found)
    monkeypatch.setattr(baselines.metadata, "version", lambda _: "2.13.0+cpu")
    monkeypatch.setattr(baselines.platform, "python_version", lambda: "3.11.7")
    return found


@pytest.mark.parametrize(
    ("test", "call", "folder"),
    [
        ("test_add", 1, "test_add"),
        ("test_add", 3, "test_add.3"),
        ("TestOps::test_add", 1, "TestOps.test_add"),
        ("test_add[10-True]", 1, "test_add-10-True-6fc28582"),
        ("test_add[10:True]", 2, "test_add-10-True-95f0b9a8.2"),
        ("test_add[../../x]", 1, "test_add-..-..-x-ced408fe"),
        (f"test_{'x' * 90}", 1, f"test_{'x' * 75}-dd06e6f6"),
    ],
)
def test_a_test_has_a_folder(machine: object, test: str, call: int, folder: str) -> None:
    place = place_of(FILE, test, call, counts=False)
    found = place.parent.relative_to("tests/__overhead__/test_ops")
    assert str(found) == folder


def test_a_machine_has_a_baseline_of_its_own(machine: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    def key(*, counts: bool = False) -> str:
        return place_of(FILE, "test_add", 1, counts=counts).name

    here, counted = key(), key(counts=True)
    assert here.startswith("amd-epyc-7763-64-core-processor-torch-2.13.0+cpu-")
    assert counted.startswith("instructions-torch-2.13.0+cpu-")
    machine["cores"] = 8
    assert key() != here
    assert key(counts=True) == counted
    machine["cores"] = 4
    assert key() == here
    monkeypatch.setattr(baselines.platform, "python_version", lambda: "3.12.1")
    assert key() != here
    assert key(counts=True) != counted


def test_what_is_kept_compares_as_the_whole(tmp_path: Path) -> None:
    sides = [REFERENCE / "eager", REFERENCE / "compiled"]
    kept = [tmp_path / "tests" / side.name for side in sides]
    for side, place in zip(sides, kept, strict=True):
        keep(side, place)
        assert sorted(path.name for path in place.iterdir()) == ["clock.parquet", "meta.json", "stacks.txt.gz"]
    whole, small = (compare_budgets(*budgets_of(pair, default_classifier())) for pair in (sides, kept))
    assert (small.wall_delta_ns, small.wall_ci95_ns, small.blame) == (
        whole.wall_delta_ns,
        whole.wall_ci95_ns,
        whole.blame,
    )
    for one, other in zip(whole.host, small.host, strict=True):
        frames = [[part for part in each.contributors if part.kind != "operator"] for each in (one, other)]
        assert (one.delta_ns, one.ci95_ns, one.verdict) == (other.delta_ns, other.ci95_ns, other.verdict)
        assert [part for part in frames[0] if part.clear] == [part for part in frames[1] if part.clear]


@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        ({"samples": {"samples": 0, "errors": 0, "reason": "no permission"}}, True),
        ({"device": "cuda"}, True),
        ({}, False),
    ],
)
def test_the_trace_is_kept_where_it_decides(tmp_path: Path, meta: dict[str, object], kept: bool) -> None:
    capture = draw_capture(tmp_path / "capture", **meta)
    for name in ("kineto.json.gz", "calibration.json", "kineto_stack.json.gz"):
        (capture / name).touch()
    keep(capture, tmp_path / "kept")
    assert [(tmp_path / "kept" / name).exists() for name in ("kineto.json.gz", "calibration.json")] == [kept, kept]
    assert not (tmp_path / "kept" / "kineto_stack.json.gz").exists()


def test_the_trace_is_kept_where_a_backward_pass_runs_on_another_thread(tmp_path: Path) -> None:
    """The step of a model on a device without a tensor among its arguments: to the recorder it is a call on the processor."""
    node = "autograd::engine::evaluate_function: AddBackward0"
    entries = [timed(0, 200, "measured_loop", "user_annotation")]
    for start in (0, 100):
        entries += [timed(start + 10, 40, "aten::empty"), timed(start + 55, 40, node, thread=AUTOGRAD)]
    trace = {"calls": 2, "traced_wall_ns": 200, "bare_wall_ns": 200, "operator_floor_ns": 30}
    capture = draw_capture(tmp_path / "capture", call_ns=100, trace=trace)
    written(capture, document(entries), "kineto.json.gz")
    keep(capture, tmp_path / "kept")
    whole, kept = (made.breakdown for made in budgets_of([capture, tmp_path / "kept"], default_classifier()))
    assert (whole.evidence, kept.evidence) == ("trace", "trace")
    assert kept.host == whole.host


def test_counts_are_kept_whole_and_an_older_baseline_goes(tmp_path: Path) -> None:
    place = draw_capture(tmp_path / "place")
    keep(draw_counts(tmp_path / "counts", {"at::add(int)": 3}), place)
    assert sorted(path.name for path in place.iterdir()) == ["callgrind.out.gz", "meta.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts", "place"]


def test_a_folder_that_cannot_be_written_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "__overhead__").write_text("mine")
    place = tmp_path / "__overhead__" / "test_ops"
    with pytest.raises(MeasurementError) as refused:
        keep(draw_capture(tmp_path / "capture"), place)
    assert str(refused.value) == f"cannot write the baseline {place}: Not a directory"
    assert (tmp_path / "__overhead__").read_text() == "mine"
