"""Critical paths beside HolisticTraceAnalysis's, on public traces.

    python -m scripts.validation.critical_path_peers FOLDER [--traces FOLDER] [--limit SECONDS]

FOLDER keeps a virtual environment with HTA, made once (it needs pandas below 3). HTA is asked for the first ``ProfilerStep`` of
each trace, and for all of a trace that has none. It takes the host's events that start in that window and the device events that
these launched, so that its chain may end after the step: both chains are compared over the stretch from the start of HTA's first
event to the end of its last.

HTA's times are whole microseconds, so that its chain counts as equal to one that is up to a microsecond shorter.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overhead_lens.readers.recording import read_recording
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.device import COPY
from overhead_lens.traces.window import Window
from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.peers.environment import hta_python

CLAIM = Claim(
    claim="critical-path-peers",
    question="Whose critical path is longer, on which traces?",
    method=(
        "HTA 0.5.0 and overhead-lens are asked for the critical path of the first step of each public trace, or of all of it. "
        "Both chains are compared over the same stretch: the sum of the weights of HTA's chain, and what of ours is explained. "
        "A chain that goes back in time counts its overlap twice; the table says by how much."
    ),
    command="python -m scripts.validation.critical_path_peers FOLDER",
    columns=(
        Column("trace"),
        Column("stretch", "ms"),
        Column("HTA: chain", "ms"),
        Column("HTA: counted twice", "ms"),
        Column("ours: chain", "ms"),
        Column("ours: unexplained", "ms"),
        Column("HTA: run", "s"),
        Column("ours: run", "s"),
        Column("outcome"),
    ),
    about=("overhead_lens/readers", "overhead_lens/taxonomy", "overhead_lens/traces"),
)

_STEP = "ProfilerStep"
_ROUNDING_NS = 1_000
_MOST_TEXT = 60

_CHILD = """
import json, logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis

path, annotation = sys.argv[1:3]
trace = TraceAnalysis(trace_files={0: path}, include_last_profiler_step=True)
frame = trace.t.get_trace(0)
names = trace.t.symbol_table.get_sym_id_map()
kernels = frame[frame["cat"].isin([names.get("kernel", -1), names.get("Kernel", -1)])]
found = trace.critical_path_analysis(rank=0, annotation=annotation, instance_id=0)
if found is None:
    raise SystemExit("finds no window")
graph, succeeded = found
if not succeeded:
    raise SystemExit("no critical path")
nodes = graph.critical_path_nodes
edges = list(zip(nodes, nodes[1:]))
times = [int(graph.node_list[node].ts) for node in nodes]
print(json.dumps({
    "kernel_us": int(kernels["ts"].min()),
    "first_us": int(min(node.ts for node in graph.node_list)),
    "last_us": int(max(node.ts for node in graph.node_list)),
    "length_us": int(sum(graph.edges[edge]["weight"] for edge in edges)),
    "back_us": sum(max(0, before - after) for before, after in zip(times, times[1:])),
}))
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """HTA's chain in whole microseconds by its own clock, or why there is none."""

    chain: dict[str, int] | None
    reason: str
    run_s: float


def main() -> None:
    """Print the table and write it."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--traces", type=Path, default=ROOT.parent / "shared" / "traces")
    parser.add_argument("--limit", type=float, default=300.0)
    options = parser.parse_args()
    python = hta_python(options.folder)
    print_heading(CLAIM.columns)
    rows = []
    for path in sorted(options.traces.glob("*.json*")):
        if path.name != "reference_values.json":
            rows.append(_row(python, path, options.limit))
            print_row(rows[-1])
    write_result(options.result, CLAIM.answered(rows, _notes(rows)))


def _row(python: Path, path: Path, limit_s: float) -> list[Cell]:
    began_s = time.perf_counter()
    analyzer = Analyzer(read_recording(path), default_classifier(), critical_path=True)
    analyzer.analysis()
    ours_s = time.perf_counter() - began_s
    steps = [
        window for window in analyzer.paths.windows if window.window.wall_ns and window.frame()["step"].iloc[0] >= 0
    ]
    theirs = _asked(python, path, _STEP if steps else "", limit_s)
    window = steps[0].window if steps else analyzer.window
    if theirs.chain is not None:
        # The two axes begin elsewhere: the first kernel is the same.
        events = analyzer.paths.graph.work.start_ns[analyzer.paths.graph.work.kind != COPY]
        offset_ns = int(events.min()) - theirs.chain["kernel_us"] * 1000
        first_us, last_us = theirs.chain["first_us"], theirs.chain["last_us"]
        window = Window(first_us * 1000 + offset_ns, (last_us - first_us) * 1000)
    name = path.name.split(".")[0]
    if not window.wall_ns:
        return [name, 0.0, None, None, None, None, theirs.run_s, ours_s, theirs.reason]
    found = analyzer.paths.over(window).path([], [])
    hta_ns = None if theirs.chain is None else theirs.chain["length_us"] * 1000
    back_ns = None if theirs.chain is None else theirs.chain["back_us"] * 1000
    return [
        name,
        window.wall_ns / 1e6,
        None if hta_ns is None else hta_ns / 1e6,
        None if back_ns is None else back_ns / 1e6,
        found.length_ns / 1e6,
        found.unexplained_ns / 1e6,
        round(theirs.run_s, 1),
        round(ours_s, 1),
        theirs.reason or _outcome(hta_ns or 0, back_ns or 0, found.length_ns),
    ]


def _outcome(hta_ns: int, back_ns: int, ours_ns: int) -> str:
    if abs(hta_ns - ours_ns) <= _ROUNDING_NS:
        return "equal"
    if ours_ns > hta_ns:
        return "ours longer"
    return "HTA's goes back in time" if hta_ns - back_ns <= ours_ns + _ROUNDING_NS else "HTA's longer"


def _asked(python: Path, path: Path, annotation: str, limit_s: float) -> Answer:
    began_s = time.perf_counter()
    try:
        done = subprocess.run(
            [str(python), "-c", _CHILD, str(path), annotation],
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, f"HTA: no answer in {limit_s:.0f} s", limit_s)
    run_s = time.perf_counter() - began_s
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Answer(None, f"HTA: {last[:_MOST_TEXT]}", run_s)
    chain: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return Answer(chain, "", run_s)


def _notes(rows: list[list[Cell]]) -> list[str]:
    outcome = [str(row[-1]) for row in rows]
    answered = sum(row[2] is not None for row in rows)
    ours = sum(row[4] is not None for row in rows)
    counted = ", ".join(
        f"{outcome.count(each)} {each}" for each in dict.fromkeys(outcome) if not each.startswith("HTA:")
    )
    return [f"{ours} of {len(rows)} traces have a path here, {answered} in HTA: {counted}."]


if __name__ == "__main__":
    main()
