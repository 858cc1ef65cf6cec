"""Many traces: the same results wherever they are computed, whatever happens to a trace or to a worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.traces.job import cluster
from overhead_lens.traces.job.cluster import analyze_here, analyze_on
from overhead_lens.traces.job.ranks import compare_ranks
from overhead_lens.traces.model import TraceAnalysis, TraceFailure
from tests.drawn.jobs import Joined, rank_entries
from tests.drawn.timelines import call, drawn, kernel, timed
from tests.drawn.trace_text import document, pretty, written

pytestmark = pytest.mark.filterwarnings("ignore")


def traces(folder: Path, count: int) -> list[Path]:
    """Traces that differ, one of them cut off, one no trace, one missing."""
    views = [pretty(timed(10 * at, 5, "aten::view")) for at in range(2_000)]
    paths = []
    for number in range(count):
        entries = [
            drawn("[------)", "aten::mm"), call("   [)", 1), kernel("     [--)", 1), *(view.replace("0.005", f"0.0{5 + number:02}") for view in views),
        ]  # fmt: skip
        text = document(entries, distributedInfo={"rank": number, "world_size": count})
        paths.append(written(folder, text[: len(text) // 2] if number == 1 else text, f"{number}.json"))
    return [*paths, written(folder, "no trace", "bad.json"), folder / "missing.json"]


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    dask = pytest.importorskip("dask")
    # Workers are forked from a process that has imported Dask and pandas.
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=60
        ) as local,
    ):
        yield local


def by_path(results: Iterator[Any]) -> dict[str, Any]:
    return {result.path: result for result in results}


def test_the_same_on_a_cluster(tmp_path: Path, workers: Any) -> None:
    paths = traces(tmp_path, 5)
    here = by_path(analyze_here(paths))
    assert [isinstance(each, TraceFailure) for each in here.values()] == [False] * 5 + [True, True]
    assert here[str(paths[1])].issues["truncated"] == 1
    assert by_path(analyze_on(workers.scheduler_address, paths)) == here


def test_a_path_over_ranks_is_the_same_on_a_cluster(tmp_path: Path, workers: Any) -> None:
    paths = []
    for rank, start in enumerate((60, 75, 70)):
        entries = rank_entries(100, [Joined(20, 30), Joined(start, 80, sequence=1)], [(1, 0, 100)])
        paths.append(
            written(tmp_path, document(entries, distributedInfo={"rank": rank, "world_size": 3}), f"{rank}.json")
        )
    here = compare_ranks(list(analyze_here(paths, critical_path=True)))
    assert here.critical_path is not None
    assert [(rank.rank, rank.ns) for rank in here.critical_path.steps[0].ranks] == [("1", 80), ("0", 20)]
    assert compare_ranks(list(analyze_on(workers.scheduler_address, paths, critical_path=True))) == here


def test_names_of_one_file_are_traces_of_their_own(
    tmp_path: Path, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces(tmp_path, 1)
    (tmp_path / "again.json").symlink_to(tmp_path / "0.json")
    monkeypatch.chdir(tmp_path)
    paths = [Path("0.json"), Path("again.json"), Path("0.json")]
    found = by_path(analyze_on(workers.scheduler_address, paths))
    assert sorted(found) == ["0.json", "again.json"]


def test_a_killed_worker_changes_nothing(tmp_path: Path, workers: Any) -> None:
    from distributed import Client

    paths = traces(tmp_path, 8)
    results = analyze_on(workers.scheduler_address, paths)
    found = [next(results)]
    with Client(workers) as client:
        victim = next(iter(client.run(os.getpid).values()))
    os.kill(victim, signal.SIGKILL)
    found += list(results)
    assert {result.path: result for result in found} == by_path(analyze_here(paths))
    assert len(found) == len(paths)


def test_a_trace_that_kills_its_workers_stops_no_other(
    tmp_path: Path, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(8)]
    monkeypatch.setattr(cluster, "analyze_file", _deadly)
    monkeypatch.setattr(workers.scheduler, "allowed_failures", 0)
    found = by_path(analyze_on(workers.scheduler_address, paths))
    assert len(found) == len(paths)
    deadly = found.pop(str(paths[0]))
    assert isinstance(deadly, TraceFailure)
    assert "every worker that took it was killed" in deadly.error
    assert found == {str(path): TraceFailure(str(path), "survived") for path in paths[1:]}


def _deadly(path: str, _rules: Any, **_options: Any) -> TraceAnalysis | TraceFailure:
    if path.endswith("0.json"):
        os.kill(os.getpid(), signal.SIGKILL)
    return TraceFailure(path, "survived")


def test_any_defect_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_path: Path) -> Any:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(cluster, "read_recording", broken)
    (result,) = analyze_here([tmp_path / "a.json"])
    assert isinstance(result, TraceFailure)
    assert result.error.endswith("internal error (please report): ZeroDivisionError: oh")


def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_TIMEOUT_S", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://there"):
        with pytest.raises(UsageError, match="no Dask scheduler answers at"):
            list(analyze_on(address, [tmp_path / "a.json"]))
