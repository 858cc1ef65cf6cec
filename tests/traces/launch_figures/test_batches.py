"""Traces of one model at several batch sizes: from which size on the device decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from overhead_lens.report.forms import to_html, to_json, to_text
from overhead_lens.report.outlines.recorded.launches import batches_sentence
from overhead_lens.traces.job.batches import Batches, compare_batches
from overhead_lens.traces.job.ranks import Job
from overhead_lens.traces.model import TraceAnalysis, TraceFailure
from tests.cli.run import error_line, lens
from tests.documents import validated
from tests.drawn.timelines import analyzer_of, call, drawn, kernel, timed
from tests.drawn.trace_text import document, written
from tests.excerpts import excerpt


def entries(busy: int, batch: int | None = None) -> list[dict]:
    """A step of 40 ns in which the host launches two kernels, each busy for so long."""
    shapes = {} if batch is None else {"Input__Dims": [[batch, 4]]}
    return [
        drawn(f"[{'-' * 39})", "ProfilerStep#1", "user_annotation"),
        drawn(f"[{'-' * 39})", "aten::linear", **shapes),
        call("[)", 1),
        call("  [)", 2),
        kernel(f"  [{'-' * (busy - 1)})", 1),
        kernel(f"{' ' * max(4, 2 + busy)}[{'-' * (busy - 1)})", 2),
    ]


def at(busy: int, batch: int | None = None, path: str = "t.json") -> TraceAnalysis:
    return replace(analyzer_of(*entries(busy, batch)).analysis(), path=path)


def compared(*busy: int, sizes: list[int] | None = None) -> Batches:
    return compare_batches([at(each, path=f"{each}.json") for each in busy], sizes)


def test_the_size_from_which_on_the_device_bounds() -> None:
    found = compared(19, 2, 18, 6, sizes=[64, 1, 32, 8])
    assert [(point.batch, point.bound, point.told_by) for point in found.points] == [
        (1, "host", "given"), (8, "host", "given"), (32, "device", "given"), (64, "device", "given"),
    ]  # fmt: skip
    # Floor 2. Of 2 ns busy none are in the way; of 6 it is 4 of 2 + 6.
    assert [(point.tklqt_ns, point.queued_ns) for point in found.points] == [(4, 0), (8, 4), (20, 16), (21, 17)]
    assert (found.device_bound_from, found.queued_from, found.notes) == (32, 32, ())
    assert [batches_sentence(found)] == excerpt("docs/guide/launches.md", "batches")


def test_one_that_is_not_bound_above_moves_it() -> None:
    assert compared(18, 2, sizes=[1, 2]).device_bound_from is None
    assert compared(18, 2, 18, sizes=[1, 2, 4]).device_bound_from == 4
    assert compared(18, 18, sizes=[1, 2]).device_bound_from == 1
    assert compared(18, 2, 18, sizes=[2, 2, 4]).device_bound_from == 4
    assert "Not bound by the device at the largest batch size, 2;" in batches_sentence(compared(18, 2, sizes=[1, 2]))


def test_sizes_that_the_shapes_tell() -> None:
    found = compare_batches([at(18, 16, "b.json"), at(2, 4, "a.json"), at(2, None, "c.json")])
    assert [(point.batch, point.path) for point in found.points] == [(4, "a.json"), (16, "b.json"), (None, "c.json")]
    assert found.device_bound_from == 16
    assert found.notes == (
        "the batch size of c.json is unknown: recorded without shapes (record_shapes=True); --batch-sizes N,N,... gives it",
    )
    unknown = compare_batches([at(2), at(18)])
    assert (unknown.device_bound_from, unknown.queued_from) == (None, None)
    assert "nothing can be compared" in batches_sentence(unknown)


def test_what_is_not_one_model_or_has_no_device() -> None:
    other = analyzer_of(
        *entries(2), call("     [)", 3), call("      [)", 4), kernel("       [)", 3), kernel("         [)", 4)
    )
    host = analyzer_of(drawn("[---)", "aten::mm")).analysis()
    found = compare_batches([at(2), other.analysis(), host], [1, 2, 4])
    assert "the traces have 2 to 4 kernels per step: are they of one model and one phase?" in found.notes
    assert "traces without device work tell nothing of what bounds" in found.notes
    assert found.points[-1].bound is None
    assert compare_batches([]).points == ()


def test_kernels_of_traces_without_steps_are_those_of_the_trace() -> None:
    two, four = (
        analyzer_of(*(timed(4 * number, 2, "gemm", "kernel", (0, 7), device=0, stream=7) for number in range(count)))
        for count in (2, 4)
    )
    mixed = compare_batches([at(2), four.analysis()], [1, 2])
    alone = compare_batches([two.analysis(), four.analysis()], [1, 2])
    for found, unit in ((mixed, "step or trace"), (alone, "trace")):
        assert f"the traces have 2 to 4 kernels per {unit}: are they of one model and one phase?" in found.notes


def test_a_trace_without_device_work_does_not_decide_what_bounds() -> None:
    host = analyzer_of(drawn("[---)", "aten::mm")).analysis()
    found = compare_batches([at(18), at(19), host], [1, 2, 4])
    assert (found.device_bound_from, found.queued_from) == (1, 1)
    assert batches_sentence(found) == (
        "Bound by the device at every batch size from 1 on; launches queue behind a busy device from 1 on."
    )
    assert batches_sentence(compare_batches([host, host], [1, 2])) == (
        "Fewer than two traces have a known batch size and device work: nothing can be compared."
    )


def test_they_are_shown() -> None:
    job = Job.of_batches((at(18, path="b.json"), TraceFailure("bad.json", "damaged"), at(2, path="a.json")), [16, 8, 1])
    shown = validated(to_json(job))
    assert shown["ranks"] is None
    assert (shown["batches"]["device_bound_from"], len(shown["batches"]["points"])) == (16, 2)
    assert "Bound by the device from batch size 16 on" in to_text(job)
    page = to_html(job)
    assert "Bound by the device from batch size 16 on" in page
    assert "b.json: Launches" in page


@pytest.mark.parametrize("given", ["1,x", "", "1,,2", "0,1", "-1,2", "1"])
def test_sizes_that_are_none(given: str, tmp_path: Path) -> None:
    paths = [written(tmp_path, document(entries(busy)), f"{busy}.json") for busy in (2, 18)]
    done = lens("analyze", *paths, "--batch-sizes", given, cwd=tmp_path)
    assert done.returncode == 2
    assert "--batch-sizes" in error_line(done)


def test_from_the_command_line(tmp_path: Path) -> None:
    paths = [written(tmp_path, document(entries(busy, busy)), f"{busy}.json") for busy in (2, 18)]
    for sizes, wanted in (("1,8", 8), ("shapes", 18)):
        done = lens("analyze", "--json", *paths, "--batch-sizes", sizes, cwd=tmp_path)
        assert validated(done.stdout)["batches"]["device_bound_from"] == wanted
    (trace,) = validated(lens("analyze", "--json", paths[0], "--tokens-per-step", "4", cwd=tmp_path).stdout)["traces"]
    assert trace["launch_figures"][0]["kernels_per_token"] == 0.5
    clash = lens("analyze", paths[0], "--query", "select 1", "--tokens-per-step", "4", cwd=tmp_path)
    assert "do not go together" in error_line(clash)
