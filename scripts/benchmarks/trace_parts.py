"""What does each part of an analysis cost, and is it linear? Drawn training jobs of 10 MB, 100 MB and 1 GB.

    python -m scripts.benchmarks.trace_parts FOLDER [--events N ...] [--also TRACE ...] [--repeat N]

FOLDER keeps the drawn traces. Each round is a fresh process; parts are made in the order of the table, so that none is paid
for twice.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.benchmarks.large_trace import write_trace
from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="trace-parts",
    question="What does each part of an analysis cost, and is it linear?",
    method=(
        "Drawn training jobs with modules, sequence numbers and allocations are read and analyzed part by part in fresh "
        "processes, the machine code of loops being there. The whole is the command line from its start to its end, without "
        "critical paths. Medians of the rounds."
    ),
    command="python -m scripts.benchmarks.trace_parts FOLDER",
    columns=(
        Column("events"),
        Column("raw text", "MB"),
        Column("part"),
        Column("time", "s"),
        Column("events a second", "1/s"),
    ),
)

_PARTS = """
import json, sys, time
from pathlib import Path
from overhead_lens.readers.recording import read_recording
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
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
devices = timed("devices, blame", lambda: [analyzer._device_budget(device, device.span) for device in analyzer.devices])
steps = timed("steps", lambda: [analyzer._step(*step) for step in analyzer._step_windows])
timed("modules", lambda: analyzer.modules)
timed("memory", lambda: [life.analysis(analyzer._step_windows) for life in analyzer.memory])
timed("sequences", lambda: analyzer.repeated)
timed("launch figures", lambda: launch_figures(trace.events, analyzer.devices, devices, steps))
timed("counters", lambda: analyzer.counted)
timed("collectives", lambda: analyzer.collectives)
timed("critical paths (asked for)", lambda: analyzer.paths.analysis())
print(json.dumps({"times": times, "events": trace.event_count, "raw": trace.raw_bytes}))
"""

_COUNT = """
import json, sys
from pathlib import Path
from overhead_lens.readers.kineto.contents import read_contents
contents = read_contents(Path(sys.argv[1]))
print(json.dumps({"events": contents.event_count, "raw": contents.raw_bytes}))
"""

_WHOLE = """
import sys, time
begin = time.perf_counter()
import subprocess
subprocess.run([sys.executable, "-m", "overhead_lens", "analyze", sys.argv[1]], stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - begin)
"""

WHOLE = "all, from the command line"


def main() -> None:
    """Draw what is missing, measure, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, nargs="+", default=[62_000, 620_000, 6_200_000])
    parser.add_argument(
        "--also", type=Path, nargs="+", default=[], metavar="TRACE", help="traces of which the whole is timed"
    )
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print_heading(CLAIM.columns)
    rows: list[list[Cell]] = []
    for events in options.events:
        trace = options.folder / f"rich_{events}.json.gz"
        if not trace.exists():
            write_trace(trace, events, rich=True)
        for row in rows_of(trace, options.repeat):
            rows.append(row)
            print_row(row)
    for trace in options.also:
        rows.append(whole_of(trace, options.repeat))
        print_row(rows[-1])
    write_result(options.result, CLAIM.answered(rows))


def rows_of(trace: Path, repeat: int) -> list[list[Cell]]:
    """A row for each part, and one for the whole."""
    rounds = [json.loads(_output(_PARTS, trace)) for _ in range(repeat)]
    times: Mapping[str, float] = {
        name: statistics.median(found["times"][name] for found in rounds) for name in rounds[0]["times"]
    }
    whole_s = statistics.median(float(_output(_WHOLE, trace)) for _ in range(repeat))
    events, raw_mb = rounds[0]["events"], round(rounds[0]["raw"] / 1e6, 1)
    return [
        [events, raw_mb, name, round(seconds, 4), round(events / seconds)]
        for name, seconds in (*times.items(), (WHOLE, whole_s))
    ]


def whole_of(trace: Path, repeat: int) -> list[Cell]:
    """The row of a recorded trace."""
    found = json.loads(_output(_COUNT, trace))
    whole_s = statistics.median(float(_output(_WHOLE, trace)) for _ in range(repeat))
    name = trace.name.partition(".")[0]
    events, raw_mb = found["events"], round(found["raw"] / 1e6, 1)
    return [events, raw_mb, f"{WHOLE}: {name}", round(whole_s, 4), round(events / whole_s)]


def _output(code: str, trace: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(trace)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
