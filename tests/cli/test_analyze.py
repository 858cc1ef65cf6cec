"""``overhead-lens analyze`` as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from overhead_lens.traces.job import cluster
from tests.cli.run import error_line, lens, lens_apart
from tests.documents import validated
from tests.drawn.captures import draw_capture
from tests.drawn.counters import counter
from tests.drawn.jobs import Joined, rank_entries
from tests.drawn.memory import memory
from tests.drawn.timelines import call, drawn, kernel, timed
from tests.drawn.trace_text import document, written
from tests.export.trace_processor import Program


def entries(extra: int = 0, name: str = "aten::mm", kernel_name: str = "gemm") -> list[dict]:
    """A step of a small job: 100 ns, of which the device is busy for 10 + ``extra``."""
    return [
        drawn("[---------------------------------------------------------------------------------------------------)", "ProfilerStep#0", "user_annotation"),
        drawn("[)", "aten::view"),
        drawn("   [---------)", name),
        call("     [--)", 1),
        kernel("         [---)", 1, kernel_name),
        drawn("                  [)", "aten::view"),
        call("                    [----)", 2),
        kernel("                           [-----" + "-" * extra + ")", 2, "ncclDevKernel_AllReduce"),
    ]  # fmt: skip


def job(folder: Path, rank: int = 0, name: str = "t.json.gz", **more: object) -> Path:
    return written(folder, document(entries(**more), distributedInfo={"rank": rank, "world_size": 2}), name)


def analyzed(*arguments: object, cwd: Path) -> dict:
    done = lens("analyze", "--json", *arguments, cwd=cwd)
    assert done.stderr == ""
    return validated(done.stdout)


def test_the_contract(tmp_path: Path) -> None:
    (trace,) = analyzed(job(tmp_path), cwd=tmp_path)["traces"]
    assert (trace["rank"], trace["events"], trace["error"]) == (0, 8, None)
    assert trace["issues"] == {"partial_overlap": 0, "negative_duration": 0, "unlinked_device_event": 0, "truncated": 0}
    assert trace["window"] == {"start_ns": 0, "wall_ns": 100, "steps": 1}
    assert {each["category"]: each["ns"] for each in trace["host"] if each["ns"]} == {
        "python": 100 - 10 - 2 - 5, "dispatcher": 2 + 7, "launch": 3 + 5,
    }  # fmt: skip
    (device,) = trace["device"]
    assert {key: device[key] for key in ("events", "span_ns", "busy_ns", "idle_ns")} == {
        "events": 2, "span_ns": 24, "busy_ns": 10, "idle_ns": 14,
    }  # fmt: skip
    assert device["kinds"] == {"compute_ns": 4, "communication_ns": 6, "copy_ns": 0, "overlap_ns": 0}
    assert {key: ns for key, ns in device["idle_blame"].items() if ns} == {
        "python": 6,
        "dispatcher": 1,
        "launch": 5,
        "queue": 2,
    }
    assert {key: device["launch"][key] for key in ("count", "median_ns", "p99_ns", "graph_launches")} == {
        "count": 2, "median_ns": 4, "p99_ns": 7, "graph_launches": 0,
    }  # fmt: skip
    (step,) = trace["steps"]
    assert (step["step"], step["wall_ns"], step["device"][0]["busy_ns"], step["device"][0]["idle_ns"]) == (
        0,
        100,
        10,
        90,
    )


def test_the_report_names_what_matters(tmp_path: Path) -> None:
    trace = job(tmp_path)
    brief = lens("analyze", trace, cwd=tmp_path).stdout
    for expected in (
        "rank 0 of 2",
        "No single cause: the device computes 4%, only communicates 6%, idles 90% of the window",
        "2 launches, latency median 4 ns, p99 7 ns",
        "aten::mm",
        "1 step of 100 ns",
        "with --all also: operators, kernels, collectives, launches",
    ):
        assert expected in brief
    whole = lens("analyze", trace, "--all", cwd=tmp_path).stdout
    for expected in ("ncclDevKernel_AllReduce", "Costliest operators", "device events without one"):
        assert expected in whole
        assert expected not in brief
    assert "--all" not in whole


@pytest.mark.parametrize("width", ["60", "80", "200"])
def test_any_width(tmp_path: Path, width: str) -> None:
    done = lens("analyze", job(tmp_path, kernel_name="k" * 300), "--all", cwd=tmp_path, env={"COLUMNS": width})
    assert done.returncode == 0
    assert "latency median 4 ns" in done.stdout
    assert "kkk" in done.stdout
    assert "k" * 100 not in done.stdout


def test_names_are_never_markup_or_controls(tmp_path: Path) -> None:
    path = job(tmp_path, name="t.json", kernel_name="[red]\x1b[31mevil\n<b>")
    text = lens("analyze", path, "--all", cwd=tmp_path).stdout
    assert "\x1b" not in text
    assert "[red]\\x1b[31mevil\\n<b>" in text


def test_two_ranks(tmp_path: Path) -> None:
    first, second = job(tmp_path, 0, "0.json"), job(tmp_path, 1, "1.json", extra=9)
    document = analyzed(first, second, cwd=tmp_path)
    assert [trace["rank"] for trace in document["traces"]] == [0, 1]
    ranks = document["ranks"]
    # Rank 0 spends 6 ns in the collective, rank 1 15: rank 0 joined last, rank 1 waited 9.
    assert (ranks["slowest"], ranks["by_collectives"]) == ("0", True)
    assert [(each["label"], each["wait_ns"], each["transfer_ns"]) for each in ranks["ranks"]] == [
        ("0", 0, 6),
        ("1", 9, 6),
    ]
    text = lens("analyze", first, second, cwd=tmp_path).stdout
    assert text.startswith("2 traces\nRank 0 is the slowest of 2 ranks: the others wait for it")
    # The slowest rank in detail, the other one in a sentence.
    assert text.index("0.json, rank 0") < text.index("Device 0") < text.index("1.json, rank 1")
    assert text.count("Device 0") < lens("analyze", first, second, "--all", cwd=tmp_path).stdout.count("Device 0")


def test_a_directory_stands_for_its_traces(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    job(folder, 1, "b.json"), job(folder, 0, "a.json.gz")
    (folder / "notes.txt").write_text("no trace")
    assert [Path(each["path"]).name for each in analyzed(folder, cwd=tmp_path)["traces"]] == ["a.json.gz", "b.json"]


def test_a_trace_that_is_named_twice_is_one_trace(tmp_path: Path) -> None:
    path = job(tmp_path)
    document = analyzed(path, tmp_path, path, cwd=tmp_path)
    assert [each["path"] for each in document["traces"]] == [str(path)]
    assert document["ranks"] is None


def test_one_bad_trace_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = written(tmp_path, "no trace at all", "bad.json")
    done = lens("analyze", "--json", job(tmp_path), bad, cwd=tmp_path)
    assert done.returncode == 2
    document = validated(done.stdout)
    assert [each["error"] is None for each in document["traces"]] == [True, False]
    assert "bad.json" in document["traces"][1]["error"]


def test_a_cut_file_is_analyzed_as_far_as_it_goes(tmp_path: Path) -> None:
    text = document(entries())
    path = written(tmp_path, text[: text.index("ncclDev")])
    (trace,) = analyzed(path, cwd=tmp_path)["traces"]
    assert (trace["issues"]["truncated"], trace["device"][0]["events"]) == (1, 1)
    assert "cut off" in lens("analyze", path, cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello", "has no traceEvents"),
        (gzip.compress(b"{}", mtime=0), "has no traceEvents"),
        (b"\x1f\x8bxx", "gzip"),
    ],
)
def test_what_is_no_trace(tmp_path: Path, content: bytes, message: str) -> None:
    done = lens("analyze", written(tmp_path, content), cwd=tmp_path)
    assert done.returncode == 2
    assert message in error_line(done)


def test_wrong_paths_and_combinations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_TIMEOUT_S", 0.5)
    path = job(tmp_path)
    other = tmp_path / "other.json.gz"
    other.write_bytes(path.read_bytes())
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, message in (
        (["none.json"], "none.json does not exist"),
        ([empty], "holds no traces"),
        (
            [draw_capture(tmp_path / "capture")],
            "capture is a stored result, which `overhead-lens report` shows; or name",
        ),
        (["--diff", path], "--diff takes two traces, not 1"),
        (["--diff", "--query", "select 1", path, path], "do not go together"),
        (["--query", "", path], "--query needs SQL"),
        (["--query", " ", path], "--query needs SQL"),
        (["--query", "select nonsense", path], "the query failed"),
        (["--pftrace", tmp_path / "o.pftrace", path, other], "--pftrace draws one trace, not 2"),
        (["--pftrace", path, path], "exists: name another --pftrace, or overwrite it with --force"),
        (["--parquet", tmp_path, path], "is not an empty directory"),
        (["--parquet", ".", path], "--parquet makes a directory of its own: name one below ."),
        (["--dask", "tcp://127.0.0.1:9", path], "no Dask scheduler answers"),
        (["--rules", "none.toml", path], "none.toml"),
        (["--batch-sizes", "4,x", path, other], "takes whole numbers with commas between them, or 'shapes', not '4,x'"),
        (["--batch-sizes", "0", path], "takes whole numbers"),
        (["--batch-sizes", "1,2,3", path, other], "takes one size for each trace, not 3 for 2"),
    ):
        done = lens("analyze", *arguments, cwd=tmp_path)
        assert done.returncode == 2, arguments
        assert message in error_line(done)


def test_no_permission(tmp_path: Path) -> None:
    path = job(tmp_path)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read every file")
    done = lens("analyze", path, cwd=tmp_path)
    assert (done.returncode, f"path '{path}' is not readable" in error_line(done)) == (2, True)


def test_rules_of_the_user(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\ncategory = "wait"\nevent = ["aten::mm"]\nsource = "mine"\n')
    (trace,) = analyzed("--rules", rules, job(tmp_path), cwd=tmp_path)["traces"]
    assert next(each["ns"] for each in trace["host"] if each["category"] == "wait") == 7


def test_dask_gives_the_same(tmp_path: Path) -> None:
    paths = [job(tmp_path, rank, f"{rank}.json") for rank in range(2)] + [written(tmp_path, "nothing", "bad.json")]
    here = validated(lens("analyze", "--json", *paths, cwd=tmp_path).stdout)
    done = lens_apart("analyze", "--json", "--dask", "local", *[path.name for path in paths], cwd=tmp_path)
    there = validated(done.stdout)
    assert done.stderr == ""
    for one, other in zip(here["traces"], there["traces"], strict=True):
        assert Path(one.pop("path")).name == other.pop("path")
        assert (one.pop("error") is None) == (other.pop("error") is None)
        assert one == other


def test_parquet(tmp_path: Path) -> None:
    bad = written(tmp_path, "nothing", "bad.json")
    lens("analyze", job(tmp_path), bad, "--parquet", tmp_path / "out", cwd=tmp_path)
    tables = {path.stem: pq.read_table(path).to_pylist() for path in (tmp_path / "out").iterdir()}
    assert sorted(tables) == ["budgets", "costs", "issues", "traces"]
    assert [(row["trace"], row["events"], row["wall_ns"], row["error"] is None) for row in tables["traces"]] == [
        (0, 8, 100, True), (1, None, None, False),
    ]  # fmt: skip
    host = [row["ns"] for row in tables["budgets"] if row["axis"] == "host" and row["step"] == -1]
    idle = {
        row["name"]: row["ns"] for row in tables["budgets"] if row["axis"] == "idle" and row["step"] == -1 and row["ns"]
    }
    assert sum(host) == 100
    assert idle == {"python": 6, "dispatcher": 1, "launch": 5, "queue": 2}
    assert [(row["name"], row["self_ns"]) for row in tables["costs"] if row["kind"] == "kernel"] == [
        ("ncclDevKernel_AllReduce", 6), ("gemm", 4),
    ]  # fmt: skip


def test_costs_of_many_names_sum_to_all(tmp_path: Path) -> None:
    """60 operators and 60 kernels of 1 ns, each with a name of its own: the ten that are not listed are in one row."""
    many = [
        each
        for at in range(60)
        for each in (timed(4 * at, 1, f"aten::op_{at}"), kernel(" " * 4 * at + "  [)", at, f"triton_{at}"))
    ]
    path = written(tmp_path, document(many), "many.json")
    assert lens("analyze", path, "--parquet", tmp_path / "out", cwd=tmp_path).returncode == 0
    costs = pq.read_table(tmp_path / "out" / "costs.parquet").to_pylist()
    for kind in ("operator", "kernel"):
        rows = [row for row in costs if row["kind"] == kind]
        assert (len(rows), sum(row["self_ns"] for row in rows), sum(row["count"] for row in rows)) == (51, 60, 60)
        assert [rows[-1][name] for name in ("name", "category", "count", "total_ns")] == ["(others)", "", 10, 10]


def test_pftrace(tmp_path: Path, trace_processor: Program) -> None:
    out = tmp_path / "out.pftrace"
    assert lens("analyze", job(tmp_path), "--pftrace", out, cwd=tmp_path).returncode == 0
    loaded = trace_processor.load(out)
    assert loaded.losses() == []

    def rows(sql: str) -> list[tuple]:
        return [tuple(row) for row in loaded.query(sql)]

    assert rows("select name, sum(dur) from slice where category = 'device budget' group by 1 order by 1") == [
        ("busy", 10), ("idle: dispatcher", 1), ("idle: launch", 5), ("idle: python", 6), ("idle: queue", 2),
    ]  # fmt: skip
    assert rows("select sum(dur) from slice where category = 'host category'") == [(100,)]
    assert rows("select name, dur from slice where category = 'step'") == [("step 0: 100 ns", 100)]
    assert rows("select count(*) from flow") == [(2,)]
    assert rows("select max(value) from counter") == [(1.0,)]


def test_query(tmp_path: Path) -> None:
    path = job(tmp_path)

    def rows(sql: str) -> list[dict]:
        return json.loads(lens("analyze", "--json", "--query", sql, path, cwd=tmp_path).stdout)

    assert rows("select blame, sum(dur_ns)::bigint ns from idle group by all order by ns desc") == [
        {"blame": "python", "ns": 6}, {"blame": "launch", "ns": 5}, {"blame": "queue", "ns": 2}, {"blame": "dispatcher", "ns": 1},
    ]  # fmt: skip
    assert rows("select call, kernel, latency_ns from launches order by start_ns") == [
        {"call": "cudaLaunchKernel", "kernel": "gemm", "latency_ns": 4},
        {"call": "cudaLaunchKernel", "kernel": "ncclDevKernel_AllReduce", "latency_ns": 7},
    ]
    assert rows("select name, dur_ns, rank from operators where name like '%mm'") == [
        {"name": "aten::mm", "dur_ns": 10, "rank": 0}
    ]
    assert rows("select step, wall_ns from steps") == [{"step": 0, "wall_ns": 100}]
    assert rows("select category, sum(dur_ns)::bigint ns from host group by 1 order by 1") == [
        {"category": "dispatcher", "ns": 9}, {"category": "launch", "ns": 8}, {"category": "python", "ns": 83},
    ]  # fmt: skip


@pytest.mark.parametrize(("sql", "told"), [("select 1", ""), ("", "overhead-lens: --query needs SQL, for example: ")])
def test_a_query_ends_without_a_complaint_of_duckdb(tmp_path: Path, sql: str, told: str) -> None:
    line, _, rest = lens_apart("analyze", "--query", sql, job(tmp_path), cwd=tmp_path).stderr.partition("\n")
    assert (line.startswith(told), bool(line), rest) == (True, bool(told), "")


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to 'x.csv'",
        "select * from read_csv('/etc/passwd')",
        "attach 'x.db'",
        "install httpfs",
        "set threads = 1",
    ],
)
def test_a_query_reaches_nothing_outside(tmp_path: Path, sql: str) -> None:
    done = lens("analyze", "--query", sql, job(tmp_path), cwd=tmp_path)
    assert (done.returncode, "the query failed" in error_line(done)) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.json.gz"]


def test_diff(tmp_path: Path) -> None:
    base, new = job(tmp_path, 0, "base.json"), job(tmp_path, 0, "new.json", extra=4, kernel_name="gemm2")
    delta = validated(lens("diff", "--json", base, new, cwd=tmp_path).stdout)
    moved = {(each["kind"], each["name"]): (each["status"], each["delta_ns"]) for each in delta["changes"]}
    assert (delta["schema"], delta["per_step"], delta["same"]) == ("overhead-lens/structure/1", True, False)
    assert moved["kernel", "gemm"] == ("vanished", -4)
    assert moved["kernel", "gemm2"] == ("appeared", 4)
    assert moved["kernel", "ncclDevKernel_AllReduce"] == ("same", 4)
    assert moved["operator", "aten::mm"] == moved["launch", "cudaLaunchKernel"] == ("same", 0)
    assert [(each["operator"], each["base_kernels"], each["new_kernels"]) for each in delta["swaps"]] == [
        ("aten::mm", ["gemm"], ["gemm2"])
    ]
    text = lens("diff", base, new, cwd=tmp_path).stdout
    assert "kernels: 1 appeared, 1 vanished; compared per step." in text
    for arguments in ((), ("--json",)):
        by_analyze = lens("analyze", "--diff", base, new, *arguments, cwd=tmp_path).stdout
        assert lens("diff", base, new, *arguments, cwd=tmp_path).stdout == by_analyze
    mixed = lens("diff", base, tmp_path, cwd=tmp_path)
    assert (mixed.returncode, error_line(mixed)) == (2, "a trace compares with a trace, a capture with a capture")
    same = lens("diff", base, base, cwd=tmp_path).stdout
    assert "The same operators, kernels and launches per step." in same


def test_analyze_imports_neither_torch_nor_pandas(tmp_path: Path) -> None:
    more = memory(5, 8), memory(9, -8), *(counter(at, "GPU power", W=1.5) for at in range(3))
    trace = written(tmp_path, document([*entries(), *more]))
    done = lens_apart("analyze", "--critical-path", trace, cwd=tmp_path, env={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "numpy" in imported
    assert {"torch", "pandas", "numba", "duckdb", "distributed", "pyarrow"} & imported == set()


def test_the_critical_path_is_there_where_it_is_asked_for(tmp_path: Path) -> None:
    trace = job(tmp_path)
    assert analyzed(trace, cwd=tmp_path)["traces"][0]["critical_path"] is None
    (path,) = analyzed(trace, "--critical-path", cwd=tmp_path)["traces"][0]["critical_path"]["windows"]
    assert (path["step"], path["wall_ns"], path["length_ns"], path["unexplained_ns"]) == (0, 100, 100, 0)
    assert sum(kind["ns"] for kind in path["kinds"]) == 100
    refused = lens("analyze", "--diff", trace, trace, "--critical-path", cwd=tmp_path)
    assert error_line(refused) == "--diff and --critical-path do not go together"


def test_of_several_traces_the_critical_path_leads_over_their_ranks(tmp_path: Path) -> None:
    # Both leave the collective together; the second joined it last.
    for rank, start in enumerate((60, 70)):
        entries_of_rank = rank_entries(100 - rank, [Joined(start, 80)], [(1, 0, 100 - rank)])
        text = document(entries_of_rank, distributedInfo={"rank": rank, "world_size": 2})
        written(tmp_path, text, f"rank{rank}.json")
    assert analyzed("rank0.json", "rank1.json", cwd=tmp_path)["ranks"]["critical_path"] is None
    (step,) = analyzed(tmp_path, "--critical-path", cwd=tmp_path)["ranks"]["critical_path"]["steps"]
    assert (step["step"], step["last"], step["wall_ns"], step["changes"]) == (1, "0", 100, 1)
    assert {rank["rank"]: rank["ns"] for rank in step["ranks"]} == {"0": 20, "1": 80}
    assert "rank 1 80.0%, rank 0 20.0%" in lens("analyze", tmp_path, "--critical-path", cwd=tmp_path).stdout
