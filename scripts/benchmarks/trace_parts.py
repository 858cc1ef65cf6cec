"""What does each part of an analysis cost, and is it linear? Drawn training jobs of 10 MB, 100 MB and 1 GB.

    python -m scripts.benchmarks.trace_parts FOLDER [--events N ...] [--also TRACE ...] [--repeat N] [--hta]

FOLDER keeps the drawn traces. Each round is a fresh process; parts are made in the order of the table, so that none is paid
for twice. With ``--hta`` FOLDER also keeps an environment with HolisticTraceAnalysis 0.5.0, which wants another pandas than ours:
in turns with the whole, HTA reads the same trace and makes four analyses that the whole has too. Both count from the start of
their processes; HTA is given up after ten minutes.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from overhead_lens.readers.kineto.contents import read_contents
from scripts.benchmarks.large_trace import write_trace
from scripts.command import Done, complaint, environment, printed, python, run
from scripts.results import ROOT, Cell, Claim, Table, columns_of

CLAIM = Claim(
    claim="trace-parts",
    question="What does each part of an analysis cost, and is it linear?",
    method=(
        "Drawn training jobs with modules, sequence numbers and allocations are read and analyzed part by part in fresh "
        "processes, the machine code of loops being there. The whole is the command line from its start to its end, without "
        "critical paths; memory is the peak of its resident set. Medians of the rounds."
    ),
    command="python -m scripts.benchmarks.trace_parts FOLDER",
    columns=columns_of("events | raw text [MB] | part | time [s] | events a second [1/s] | peak memory [GB]"),
)

_PARTS = """
import json, sys, time
from pathlib import Path
from overhead_lens.readers.recording import read_recording
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.findings.find import findings
from overhead_lens.traces.launch_figures.analysis import launch_figures

times = {}
def timed(name, make):
    begin = time.perf_counter()
    made = make()
    times[name] = time.perf_counter() - begin
    return made

trace = timed("reading", lambda: read_recording(Path(sys.argv[1])))
analyzer = timed("host events, launches", lambda: Analyzer(trace, default_classifier(), critical_path=True))
timed("budgets of threads", lambda: [analyzer._thread_budget(*pair) for pair in analyzer.threads.items()])
devices = timed("devices, blame", lambda: [analyzer._device_budgets(device, [device.span])[0] for device in analyzer.devices])
steps = timed("steps", analyzer._steps)
timed("modules", lambda: analyzer.modules)
timed("memory", lambda: [life.analysis(analyzer.step_windows) for life in analyzer.memory])
timed("sequences", lambda: analyzer.repeated)
timed("launch figures", lambda: launch_figures(trace.columns, analyzer.devices, devices, steps))
timed("counters", lambda: analyzer.counted)
timed("collectives", lambda: analyzer.collectives)
timed("critical paths (asked for)", lambda: analyzer.paths.analysis())
analysis = analyzer.analysis()
timed("findings", lambda: findings(analyzer._recorded(analysis)))
print(json.dumps({"times": times, "events": trace.event_count, "raw": trace.raw_bytes}))
"""

_HTA = """
import contextlib, io, logging, os, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
with contextlib.redirect_stdout(io.StringIO()):
    job = TraceAnalysis(trace_files={0: os.path.basename(sys.argv[1])}, trace_dir=os.path.dirname(sys.argv[1]))
    job.get_temporal_breakdown(visualize=False)
    job.get_idle_time_breakdown(ranks=[0], visualize=False)
    job.get_gpu_kernel_breakdown(visualize=False)
    job.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
"""

# Runs a program; its time and the peak of its resident set.
_TIMED = """
import json, resource, subprocess, sys, time
begin_s = time.perf_counter()
limit_s = float(sys.argv[1])
try:
    code = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, timeout=limit_s).returncode
except subprocess.TimeoutExpired:
    sys.exit(f"did not end in {limit_s:.0f} s")
seconds = time.perf_counter() - begin_s
print(json.dumps({"seconds": seconds, "bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}))
sys.exit(code)
"""

WHOLE = "all, from the command line"
HTA = "HTA 0.5.0, four analyses"
_HTA_PACKAGES = ("HolisticTraceAnalysis==0.5.0", "pandas<3")
_LIMIT_S = 600.0

_Timed = dict[str, float]
"""``seconds`` and ``bytes`` of a program."""


def main() -> None:
    """Draw what is missing, measure, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, nargs="+", default=[62_000, 620_000, 6_200_000])
    parser.add_argument(
        "--also", type=Path, nargs="+", default=[], metavar="TRACE", help="traces of which the whole is timed"
    )
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--hta", action="store_true", help="beside HolisticTraceAnalysis, from the package index")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    hta = environment(options.folder.absolute() / "hta", *_HTA_PACKAGES) if options.hta else None
    table = Table(CLAIM)
    for events in options.events:
        trace = options.folder / f"rich_{events}.json.gz"
        if not trace.exists():
            write_trace(trace, events, rich=True)
        table.add(*rows_of(trace, options.repeat), *whole_rows(trace, options.repeat, hta))
    for trace in options.also:
        table.add(*whole_rows(trace, options.repeat, hta, f": {trace.name.partition('.')[0]}"))
    table.write(options.result)


def rows_of(trace: Path, repeat: int) -> list[list[Cell]]:
    """A row for each part."""
    rounds = [json.loads(python("-c", _PARTS, trace, folder=ROOT)) for _ in range(repeat)]
    size = rounds[0]["events"], rounds[0]["raw"]
    return [_row(*size, name, [document["times"][name] for document in rounds]) for name in rounds[0]["times"]]


def whole_rows(trace: Path, repeat: int, hta: Path | None, name: str = "") -> list[list[Cell]]:
    """The row of the whole, and that of HTA in turns with it."""
    contents = read_contents(trace)
    size = contents.event_count, contents.raw_bytes
    ours: list[_Timed] = []
    theirs: list[_Timed] = []
    reason = ""
    for _ in range(repeat):
        done = _timed(sys.executable, "-m", "overhead_lens", "analyze", trace.absolute())
        ours.append(json.loads(printed(done)))
        if hta is not None and not reason:
            done = _timed(hta, "-c", _HTA, trace.absolute())
            reason = complaint(done) if done.returncode else ""
            theirs += [] if reason else [json.loads(done.stdout)]
    rows = [_whole_row(size, f"{WHOLE}{name}", ours)]
    if hta is not None:
        rows.append(_whole_row(size, f"{HTA}{name}{f': {reason}' if reason else ''}", [] if reason else theirs))
    return rows


def _timed(*words: object) -> Done:
    """Run a program; the output is its ``_Timed`` as JSON, the exit code its own."""
    return run([sys.executable, "-c", _TIMED, _LIMIT_S, *words], ROOT)


def _whole_row(size: tuple[int, int], name: str, rounds: Sequence[_Timed]) -> list[Cell]:
    row = _row(*size, name, [each["seconds"] for each in rounds])
    return [*row[:-1], round(statistics.median(each["bytes"] for each in rounds) / 1e9, 3) if rounds else None]


def _row(events: int, raw_bytes: int, name: str, seconds: Sequence[float]) -> list[Cell]:
    median_s = statistics.median(seconds) if seconds else None
    rate = round(events / median_s) if median_s else None
    return [events, round(raw_bytes / 1e6, 1), name, median_s and round(median_s, 4), rate, None]


if __name__ == "__main__":
    main()
