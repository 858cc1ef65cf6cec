"""``overhead-lens open`` and ``export --to perfetto``: what is handed to the UI, asked with SQL; one line for what cannot be."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pytest

from overhead_lens.captures.files import KINETO
from overhead_lens.export.viewer import server
from overhead_lens.export.viewer.address import SUMS
from overhead_lens.export.viewer.server import Document
from overhead_lens.program.area import Phase
from overhead_lens.studies.run.analysis import run_budget_of
from overhead_lens.taxonomy.classifier import default_classifier
from tests.cli.run import error_line, lens
from tests.drawn.captures import draw_capture
from tests.drawn.processes import S, draw_process, thread
from tests.drawn.runs import KERNEL, STEP_NS, WAIT, WORK, bare, main, run_of, slow_run, store, stretch
from tests.drawn.timelines import call, document, drawn, kernel
from tests.export.trace_processor import Program, TraceProcessor

REFERENCE = Path(__file__).parents[2] / "traces" / "reference"


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trace_processor: Program) -> Callable[..., TraceProcessor]:
    """What the UI would get."""

    def open_(target: Path, *options: str) -> TraceProcessor:
        kept = tmp_path / "served.pftrace"

        def serve(documents: Mapping[str, Document], **_: object) -> bool:
            body = documents["trace"].body
            assert isinstance(body, Path)
            shutil.copy(body, kept)
            return True

        monkeypatch.setattr(server, "serve", serve)
        done = lens("open", target, "--no-browser", *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        loaded = trace_processor.load(kept)
        assert loaded.losses() == []
        return loaded

    return open_


def sums(trace: TraceProcessor) -> dict[str, dict[str, int]]:
    """Track, category, ns, as the tab of the UI shows them."""
    found: dict[str, dict[str, int]] = {}
    for track, category, *_, ns in trace.query(SUMS):
        found.setdefault(track, {})[category] = ns
    return found


def host_of(document: Mapping) -> dict[str, int]:
    return {each["category"]: each["ns"] for each in document["host"] if each["ns"]}


def views(trace: TraceProcessor) -> tuple[int, int]:
    (start,), (end,) = trace.query(
        "select int_value from metadata where name in ('tracing_started_ns', 'tracing_disabled_ns') order by name desc"
    )
    return start, end


# ---------------------------------------------------------------- a capture
def assert_sums_are_the_documents(trace: TraceProcessor, name: str) -> None:
    report = json.loads(lens("report", REFERENCE / name, "--json", cwd=REFERENCE).stdout)
    assert sums(trace) == {"1. Budget of one call": host_of(report)}
    wall_ns = int(report["wall"]["ns"])
    start, end = views(trace)
    assert start == 0
    assert wall_ns <= end <= 2 * wall_ns


def test_a_compiled_call_with_stacks_of_each_category(opened: Callable[..., TraceProcessor]) -> None:
    """Whoever selects a slice's time sees the flamegraph of its category, in as many stacks as were taken."""
    trace = opened(REFERENCE / "compiled")
    assert_sums_are_the_documents(trace, "compiled")
    outermost = """
        with recursive stack(ts, callsite, id) as (
          select ts, callsite_id, callsite_id from perf_sample
          union all select s.ts, c.parent_id, s.callsite from stack s join stack_profile_callsite c on s.callsite = c.id
        )
        select s.ts, f.name as name from stack s join stack_profile_callsite c on s.id = c.id
        join stack_profile_frame f on c.frame_id = f.id where s.callsite is null"""
    budget = "select ts, dur, extract_arg(arg_set_id, 'debug.category') as name from slice where category = 'budget'"
    stray = (
        f"select count(*) from ({outermost}) s join ({budget}) b using (name) where s.ts < b.ts or s.ts > b.ts + b.dur"
    )
    assert trace.query(stray) == [(0,)]
    counts = dict(trace.query(f"select name, count(*) as n from ({outermost}) group by 1"))
    assert sum(counts.values()) == 2_990
    assert counts["guard"] > 100


def test_an_eager_call_with_the_traced_one_and_one_with_python_stacks(opened: Callable[..., TraceProcessor]) -> None:
    trace = opened(REFERENCE / "eager")
    assert_sums_are_the_documents(trace, "eager")
    tracks = dict(
        trace.query(
            "select t.name as track, count(*) as n from slice s join track t on s.track_id = t.id where s.category != 'text' group by 1"
        )
    )
    assert tracks["4. Traced call: operators"] == 5
    assert tracks["6. With Python stacks"] == 6
    (length,) = trace.query(
        "select max(s.ts + s.dur) as end from slice s join track t on s.track_id = t.id where t.name glob '3. *'"
    )
    assert length == (views(trace)[1],)


def test_a_capture_of_an_earlier_schema(tmp_path: Path, opened: Callable[..., TraceProcessor]) -> None:
    path = draw_capture(tmp_path / "old")
    meta = json.loads((path / "meta.json").read_text())
    subject = meta.pop("subject")
    meta |= {
        "schema": "overhead-lens/capture/1",
        "scenario": subject["name"],
        **{key: subject[key] for key in ("variant", "params", "compile", "device")},
    }
    (path / "meta.json").write_text(json.dumps({**meta, **meta.pop("instruments", {})}))
    assert sums(opened(path)) == {"1. Budget of one call": {"python": 1_000}}


# ---------------------------------------------------------------- a run
def test_a_runs_sums_are_the_documents(tmp_path: Path, opened: Callable[..., TraceProcessor]) -> None:
    path = slow_run(tmp_path / "run")
    budget = run_budget_of(path, default_classifier())
    trace = opened(path)
    assert sums(trace) == {"1. Budget of a step": {each.category: each.ns for each in budget.host if each.ns}}
    # Of 41 bare steps in the order of their lengths, the one in the middle is the first behind the slow one.
    step = "select ts, dur from slice where name = 'step 44' and category = 'step'"
    start_ns = 128 * STEP_NS + 7_777
    assert trace.query(step) == [(start_ns, STEP_NS)]
    drawn_ns = trace.query("select min(ts), sum(dur) from slice where category = 'budget'")
    assert drawn_ns == [(start_ns, budget.wall.ns)]
    assert budget.wall.ns == 1_200_000
    assert views(trace) == (start_ns, start_ns + 1_200_000)
    ((text,),) = trace.query("select name from slice where category = 'text' order by id limit 1")
    assert text == (
        "One step, 1.20 ms: the mean of 40 bare steps. Drawn over step 44; zoom out for the whole run. The categories sum to it; "
        "their order is not the order of events. train.py --epochs 3; steps by optimizer, train.py:7."
    )


def test_a_runs_steps_with_the_slowest_marked(tmp_path: Path, opened: Callable[..., TraceProcessor]) -> None:
    trace = opened(slow_run(tmp_path / "run"))
    phases = trace.query(
        "select name, extract_arg(arg_set_id, 'debug.steps') as n, dur from slice where category = 'phase' order by ts"
    )
    assert phases == [
        ("warm-up", 20, 100 * STEP_NS),
        ("bare (measured)", 41, 48 * STEP_NS + 7_777),
        ("traced by torch.profiler", 3, 6 * STEP_NS),
    ]
    slow = (
        "select distinct name, dur, extract_arg(arg_set_id, 'debug.gc_ns') as gc_ns from slice where name glob 'slow*'"
    )
    assert trace.query(slow) == [("slow step 43: 9.00 ms, garbage collection", 9 * STEP_NS, 8 * STEP_NS)]
    steps = (
        "select count(*) from slice s join track t on s.track_id = t.id where t.name = '4. Steps' and category = 'step'"
    )
    assert trace.query(steps) == [(64,)]
    longest = "select c.value, t.unit as unit from counter c join counter_track t on c.track_id = t.id where t.name = '2. Time of a step' order by 1 desc limit 1"
    assert trace.query(longest) == [(9_000.0, "µs")]


def test_a_run_that_ends_in_its_warm_up_is_drawn_over_the_step_of_median_length(
    tmp_path: Path, opened: Callable[..., TraceProcessor]
) -> None:
    trace = opened(store(tmp_path / "run", run_of(*stretch(Phase.WARM_UP, 9 * STEP_NS, STEP_NS, 2 * STEP_NS))))
    assert views(trace) == (10 * STEP_NS, 14 * STEP_NS)
    ((text,),) = trace.query("select name from slice where category = 'text' order by id limit 1")
    assert text.startswith("One step, 4.00 ms: the mean of steps that were not traced. Drawn over step 5; ")


def test_a_runs_regions_and_threads(tmp_path: Path, opened: Callable[..., TraceProcessor]) -> None:
    trace = opened(slow_run(tmp_path / "run"))
    region = "select name, ts, dur from slice where category = 'region'"
    assert trace.query(region) == [("decode 100.0 µs", views(trace)[0], 100_000)]
    assert trace.query("select sum(dur) from slice where category = 'budget of a region'") == [(100_000,)]
    other = "select t.name as track, sum(s.dur) as dur from slice s join track t on s.track_id = t.id where s.category = 'budget of a thread' group by 1"
    assert trace.query(other) == [("6. Budget of loader", 1_200_000)]
    sampled = (
        "select thread.name as name, count(*) as n from perf_sample join thread using (utid) group by 1 order by 1"
    )
    assert trace.query(sampled) == [("MainThread", 100), ("loader", 100)]


def test_steps_in_another_thread_have_a_flamegraph_beside_the_main_threads(
    tmp_path: Path, opened: Callable[..., TraceProcessor]
) -> None:
    run = run_of(*bare(*[STEP_NS] * 20), thread=11, thread_name="trainer")
    trace = opened(store(tmp_path / "run", run, [[f"thread (11): trainer;{WORK} 60", main(WAIT, 100)]]))
    sampled = "select thread.name as name, upid, count(*) as n from perf_sample join thread using (utid) group by 1, 2"
    (first, process, _), (last, other, _) = sorted(trace.query(sampled))
    assert (first, last) == ("MainThread", "trainer")
    assert process != other
    shown = "select thread.name as name from perf_sample join thread using (utid) order by ts desc limit 1"
    assert trace.query(shown) == [("trainer",)]


def test_a_runs_traced_steps_stand_where_they_were(tmp_path: Path, opened: Callable[..., TraceProcessor]) -> None:
    path = slow_run(tmp_path / "run")
    entries = [
        drawn(" [------)              ", "ProfilerStep#0", "user_annotation"),
        drawn("  [---)                ", "aten::mm"),
    ]
    (path / KINETO).write_bytes(gzip.compress(document(entries).encode()))
    trace = opened(path)
    steps = "select ts from slice where name = '{}' and category = '{}'"
    begun = trace.query(steps.format("step 64", "step"))
    assert begun == [(148 * STEP_NS + 7_777,)]
    assert trace.query(steps.format("ProfilerStep#0", "user_annotation")) == begun
    assert trace.query("select dur from slice where name = 'aten::mm'") == [(4,)]
    on_top = {name for (name,) in trace.query("select name from track where name glob '*Host by category'")}
    assert on_top == {"7. Host by category"}
    # The budget lies over the traced step of median length, which takes longer.
    start_ns = 150 * STEP_NS + 7_777
    assert trace.query("select min(ts), sum(dur) from slice where category = 'budget'") == [(start_ns, 1_200_000)]
    assert views(trace) == (start_ns, start_ns + 2 * STEP_NS)


def test_a_run_without_steps(tmp_path: Path, opened: Callable[..., TraceProcessor]) -> None:
    path = store(tmp_path / "run", run_of(home=None, found_by="none"), [[main(WORK, 50), main(KERNEL, 50)]])
    trace = opened(path)
    assert sums(trace) == {"1. Budget of the run": {"python": 2_500_000, "kernel": 2_500_000}}
    assert views(trace) == (0, 5_000_000)


# ---------------------------------------------------------------- a process, a trace
def test_a_watched_process(tmp_path: Path, opened: Callable[..., TraceProcessor]) -> None:
    path = draw_process(tmp_path / "p", *thread(10, "MainThread", 60, 40), *thread(11, "other", 10, 90))
    trace = opened(path)
    assert {track: sum(each.values()) for track, each in sums(trace).items()} == {"1. Budget of MainThread": 10 * S}
    assert views(trace) == (0, 10 * S)


ENTRIES = [
    drawn("[------------------)", "aten::mm"),
    call("      [--)           ", 1),
    kernel("           [-----)    ", 1),
    kernel("                  [--)", 2),
]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "renamed"])
def test_an_exported_trace_is_drawn(tmp_path: Path, opened: Callable[..., TraceProcessor], name: str) -> None:
    text = document(ENTRIES).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    analysis = json.loads(lens("analyze", tmp_path / name, "--json", cwd=tmp_path).stdout)["traces"][0]
    trace = opened(tmp_path / name)
    (device,) = analysis["device"]
    idle = {f"idle: {blame}": ns for blame, ns in device["idle_blame"].items() if ns}
    tracks = sums(trace)
    assert tracks["1. Budget of the trace"] == host_of(analysis)
    assert tracks["3. Device 0"] == {"busy": device["busy_ns"], **idle}


def test_a_picture_is_handed_over_as_it_is(tmp_path: Path, opened: Callable[..., TraceProcessor]) -> None:
    capture = draw_capture(tmp_path / "capture")
    assert lens("export", capture, "--format", "perfetto", "-o", "t.pftrace", cwd=tmp_path).returncode == 0
    opened(tmp_path / "t.pftrace")
    assert (tmp_path / "served.pftrace").read_bytes() == (tmp_path / "t.pftrace").read_bytes()
    (tmp_path / "t.pftrace.gz").write_bytes(gzip.compress((tmp_path / "t.pftrace").read_bytes()))
    opened(tmp_path / "t.pftrace.gz")
    assert (tmp_path / "served.pftrace").read_bytes() == (tmp_path / "t.pftrace.gz").read_bytes()


# ---------------------------------------------------------------- the command
def test_an_address_is_printed_where_no_browser_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")
    monkeypatch.setattr(
        server, "serve", lambda documents, timeout_s, on_ready: on_ready("http://127.0.0.1:4711/secret/") is None
    )
    done = lens("open", draw_capture(tmp_path / "capture"), cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "http://127.0.0.1:4711/secret/",
        "open this address; click the button there; Ctrl-C ends",
        "from another machine, forward its port first: ssh -L 4711:127.0.0.1:4711 ...",
    ]


def test_nobody_comes(tmp_path: Path) -> None:
    capture = draw_capture(tmp_path / "capture")
    done = lens("open", capture, "--no-browser", "--wait", "1", cwd=tmp_path)
    assert (done.stderr, done.returncode) == ("overhead-lens: no browser fetched the trace within 1 s\n", 3)
    assert done.stdout.startswith("http://127.0.0.1:")
    assert list(tmp_path.iterdir()) == [capture]


def test_what_cannot_be_opened_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.pftrace").touch()
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b'{"traceEvents": []}')[:-9])
    (tmp_path / "list.json").write_text("[1, 2")
    with (tmp_path / "large.pftrace").open("wb") as large:
        large.write(b"\n")
        large.truncate(2 << 30)
    (tmp_path / "interrupted").mkdir()
    damaged = draw_capture(tmp_path / "damaged")
    (damaged / "clock.parquet").write_bytes(b"no parquet")
    newer = draw_capture(tmp_path / "newer")
    (newer / "meta.json").write_text('{"schema": "overhead-lens/capture/9"}')
    run = slow_run(tmp_path / "run")
    pd.DataFrame({"begin_ns": [1.5]}).to_parquet(run / "steps.parquet")
    store(tmp_path / "job" / "rank-0", run_of())
    for target, message in (
        ("gone", "no trace gone"),
        ("empty.pftrace", "empty.pftrace is empty"),
        (
            "large.pftrace",
            "the trace of large.pftrace has 2.1 GB, and a browser takes 2 GB at most; Perfetto's trace_processor --httpd",
        ),
        ("cut.json.gz", "cannot read cut.json.gz: "),
        ("list.json", "list.json holds no event"),
        ("interrupted", "interrupted is not a complete capture: it has no meta.json (was it interrupted?)"),
        ("damaged", "the capture damaged is damaged: "),
        (
            "newer",
            "the capture newer has schema 'overhead-lens/capture/9'; this version reads 'overhead-lens/capture/2'",
        ),
        ("run", "the run run is damaged: "),
        ("job", "job holds the ranks of a job: name one of them, job/rank-0"),
        (
            REFERENCE / "ladder",
            f"{REFERENCE / 'ladder'} is a ladder, not the capture of a call; `overhead-lens report` shows it",
        ),
    ):
        done = lens("open", target, "--no-browser", "--wait", "1", cwd=tmp_path)
        assert error_line(done).startswith(message), target
        assert done.returncode == 2
