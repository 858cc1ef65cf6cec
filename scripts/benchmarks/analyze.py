"""Reading and analyzing traces beside HolisticTraceAnalysis 0.5.0, in one run.

    python -m scripts.benchmarks.analyze FOLDER [--gpu-trace FILE] [--repeat N] [--sizes MB ...] [--hta-limit SECONDS] [--no-hta]

FOLDER keeps what is made once: a virtual environment with HTA (it needs pandas below 3), and the inputs. The CPU traces are
a real training loop under torch.profiler, recorded for as many steps as the size takes (raw JSON, gzipped). HTA's analyses need
kernels: for the whole of ``analyze`` the public GPU trace of ``--gpu-trace`` is laid end to end, with its times, correlations
and external ids shifted, until the size is reached.

Every figure is from fresh processes, the two sides alternating, medians of ``--repeat`` rounds. Memory is the peak of the
resident set above what the imports hold. "Scanner loaded" counts from after a trace of one event has loaded numba and the
compiled scanner; "from imports" counts their loading too. HTA is ended after ``--hta-limit`` seconds: its time for a long
trace of the host alone grows faster than the trace.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.peers.environment import hta_python

CLAIM = Claim(
    claim="analyze",
    question="How fast are traces read and analyzed, and in how much memory?",
    method=(
        "Recorded and tiled traces of several sizes are read and analyzed in fresh processes, in turns with HTA 0.5.0. "
        "Figures are counted from after the compiled scanner is loaded, and from the imports on. "
        "Memory is the peak of the resident set above what the imports hold, as a share of the raw JSON."
    ),
    command="python -m scripts.benchmarks.analyze FOLDER --gpu-trace FILE",
    columns=(
        Column("input"),
        Column("events"),
        Column("what"),
        Column("unit"),
        Column("scanner loaded"),
        Column("from imports"),
        Column("HTA 0.5.0"),
        Column("HTA over scanner loaded"),
        Column("HTA over from imports"),
    ),
)

_STATUS = """
def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key + ":"))
"""

_OURS = (
    _STATUS
    + """
import json, sys, tempfile, time
from pathlib import Path
from overhead_lens.traces.analyzer import analyze_trace
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.readers.kineto import contents as kineto
from overhead_lens.readers.kineto.read import read_trace
if sys.argv[2] == "warm":
  with tempfile.NamedTemporaryFile("w", suffix=".json") as one:
    print('[{"ph": "X", "ts": 1, "dur": 1, "name": "a"}]', file=one, flush=True)
    limits = kineto.SMALL_BYTES, kineto.UNCOMPILED_BYTES
    kineto.SMALL_BYTES = kineto.UNCOMPILED_BYTES = 1
    read_trace(Path(one.name))
    kineto.SMALL_BYTES, kineto.UNCOMPILED_BYTES = limits
before, begin = status("VmRSS"), time.perf_counter()
trace = read_trace(Path(sys.argv[1]))
load_s, peak = time.perf_counter() - begin, status("VmHWM") - before
analysis = analyze_trace(trace, default_classifier())
whole_s = time.perf_counter() - begin
print(json.dumps({"load_s": load_s, "whole_s": whole_s, "peak": peak, "raw": trace.raw_bytes, "events": trace.event_count,
                  "peak_whole": status("VmHWM") - before}))
"""
)

_THEIRS = (
    _STATUS
    + """
import contextlib, io, json, logging, os, sys, time, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
before, begin = status("VmRSS"), time.perf_counter()
with contextlib.redirect_stdout(io.StringIO()):
    job = TraceAnalysis(trace_files={0: os.path.basename(sys.argv[1])}, trace_dir=os.path.dirname(sys.argv[1]))
    load_s, peak = time.perf_counter() - begin, status("VmHWM") - before
    whole_s, error = None, None
    if sys.argv[2] == "whole":
        try:
            job.get_temporal_breakdown(visualize=False)
            job.get_idle_time_breakdown(ranks=[0], visualize=False)
            job.get_gpu_kernel_breakdown(visualize=False)
            job.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
            whole_s = time.perf_counter() - begin
        except Exception as failure:
            error = repr(failure)
print(json.dumps({"load_s": load_s, "whole_s": whole_s, "peak": peak, "error": error}))
"""
)

_SWEEP = """
import sys, time
from pathlib import Path
import numpy as np
from overhead_lens.traces.host import host_events
from overhead_lens.traces.timeline import sweep
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.readers.kineto.read import read_trace
host = host_events(read_trace(Path(sys.argv[1])).events, default_classifier())
at = np.flatnonzero(host.thread == np.bincount(host.thread).argmax())
start, dur = host.start_ns[at], host.dur_ns[at]
window = (int(start.min()), int((start + dur).max()))
rates = []
for _ in range(9):
    begin = time.perf_counter()
    sweep(start, dur, window).self_ns(len(at))
    rates.append(len(at) / (time.perf_counter() - begin))
print(len(at), sorted(rates[2:])[len(rates[2:]) // 2])
"""

_WORKLOAD = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, record_function
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(6)))
optimizer = torch.optim.AdamW(model.parameters())
data = torch.randn(32, 64)
def step():
    optimizer.zero_grad()
    loss = (model(data) - data).square().mean()
    loss.backward()
    optimizer.step()
step()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
    for number in range(int(sys.argv[2])):
        with record_function(f"ProfilerStep#{number}"):
            step()
recording.export_chrome_trace(sys.argv[1])
"""


def main() -> None:
    """Make what is missing, measure, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpu-trace", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1_000], help="MB of raw JSON")
    parser.add_argument("--hta-limit", type=float, default=600)
    parser.add_argument("--no-hta", action="store_true", help="measure this package alone")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    hta = None if options.no_hta else hta_python(folder)
    inputs = [(f"CPU, {size} MB", cpu_trace(folder, size), "load") for size in options.sizes]
    if options.gpu_trace:
        inputs += [
            (f"GPU, {size} MB", gpu_trace(folder, size, options.gpu_trace), "whole") for size in options.sizes[1:]
        ]
    rows: list[list[Cell]] = []
    notes = []
    print_heading(CLAIM.columns)
    for label, path, what in inputs:
        alternated = alternately(path, hta, what, options.repeat, options.hta_limit)
        rows += rows_of(label, alternated)
        if alternated.reason:
            notes.append(f"{label}: HTA {alternated.reason}.")
    (_, smallest, _), *_ = inputs
    rows += command_line(options.sizes[0], smallest)
    rows.append(self_time(cpu_trace(folder, options.sizes[-1])))
    for row in rows:
        print_row(row)
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))


@dataclass(frozen=True, slots=True)
class Alternated:
    """Results of ours with the scanner loaded, of ours from imports and of HTA, and why HTA gave none."""

    warm: Sequence[dict[str, Any]]
    cold: Sequence[dict[str, Any]]
    theirs: Sequence[dict[str, Any]]
    reason: str | None


def rows_of(label: str, found: Alternated) -> list[list[Cell]]:
    """Rows for one trace: reading it, the whole analysis, and the memory of both."""
    raw, events = found.warm[0]["raw"], found.warm[0]["events"]
    rows: list[list[Cell]] = []
    for what, key, unit, over in (
        ("file to frame", "load_s", "s", 1),
        ("peak memory of the frame", "peak", "of the raw size", raw),
        ("the whole analysis", "whole_s", "s", 1),
        ("its peak memory", "peak_whole", "of the raw size", raw),
    ):
        ours = [middle(side, key) for side in (found.warm, found.cold)]
        known = [each for each in found.theirs if each.get(key) is not None]
        other = middle(known, key) if known else None
        ratios = [round(other / own, 1) if other is not None else None for own in ours]
        sizes = [None if each is None else round(each / over, 2) for each in (*ours, other)]
        rows.append([label, events, what, unit, *sizes, *ratios])
    return rows


def alternately(path: Path, hta: Path | None, what: str, repeat: int, limit_s: float) -> Alternated:
    """Run all sides one after the other, each in a fresh process; HTA is given up where it takes too long."""
    warm, cold, theirs = [], [], []
    reason = None
    run(sys.executable, _OURS, path, "warm")  # compiles, where the cache is empty
    for _ in range(repeat):
        warm.append(run(sys.executable, _OURS, path, "warm"))
        cold.append(run(sys.executable, _OURS, path, "cold"))
        if hta is None or reason:
            continue
        try:
            theirs.append(run(str(hta), _THEIRS, path, what, limit_s))
            reason = theirs[-1]["error"]
        except subprocess.TimeoutExpired:
            theirs, reason = [], f"did not end in {limit_s:.0f} s"
    return Alternated(warm, cold, theirs, reason)


def run(python: str, code: str, path: Path, what: str, limit_s: float | None = None) -> dict[str, Any]:
    """One fresh process."""
    command = [python, "-c", code, str(path), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s, cwd=ROOT)
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def middle(results: Sequence[dict[str, Any]], key: str) -> float:
    """The median of a figure."""
    return float(statistics.median(result[key] for result in results))


def command_line(size_mb: int, path: Path) -> list[list[Cell]]:
    """The time of the command itself, the first time (nothing compiled, nothing cached) and later."""
    command = [sys.executable, "-m", "overhead_lens", "analyze", str(path)]
    first, later = [], []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as empty:
            first.append(timed(command, {**os.environ, "NUMBA_CACHE_DIR": empty}))
        later.append(timed(command, dict(os.environ)))
    label = f"CPU, {size_mb} MB"
    return [
        [label, None, f"command line, {when}", "s", None, round(statistics.median(seconds), 2), None, None, None]
        for when, seconds in (("first run", first), ("later", later))
    ]


def self_time(path: Path) -> list[Cell]:
    """The rate of the self-time pass over the largest thread."""
    command = [sys.executable, "-c", _SWEEP, str(path)]
    events, rate = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    millions = round(float(rate) / 1e6, 1)
    return ["largest thread", int(events), "self-time pass", "million events/s", millions, None, None, None, None]


def timed(command: list[str], env: dict[str, str]) -> float:
    """Seconds of a command."""
    begin = time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True, cwd=ROOT)
    return time.perf_counter() - begin


def cpu_trace(folder: Path, size_mb: int) -> Path:
    """A recording of about ``size_mb`` of JSON."""
    path = folder / f"cpu_{size_mb}mb.json.gz"
    if not path.exists():
        steps = 10
        for _ in range(2):
            plain = folder / "part.json"
            subprocess.run([sys.executable, "-c", _WORKLOAD, str(plain), str(steps)], check=True)
            size = plain.stat().st_size
            if size >= 0.9e6 * size_mb:
                break
            steps = int(steps * size_mb * 1e6 / size)
        compress(plain, path)
    return path


def compress(plain: Path, path: Path) -> None:
    """Gzip a file and take it away."""
    with plain.open("rb") as source, gzip.open(path.with_suffix(".part"), "wb", compresslevel=6) as packed:
        while block := source.read(1 << 22):
            packed.write(block)
    path.with_suffix(".part").rename(path)
    plain.unlink()


def gpu_trace(folder: Path, size_mb: int, model: Path) -> Path:
    """The trace ``model`` laid end to end."""
    path = folder / f"gpu_{size_mb}mb.json.gz"
    if not path.exists():
        text = model.read_bytes()
        document = json.loads(gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text)
        with gzip.open(path.with_suffix(".part"), "wb", compresslevel=6) as packed:
            for piece in tiled(document, size_mb * 1_000_000):
                packed.write(piece.encode())
        path.with_suffix(".part").rename(path)
    return path


_SHIFTED = re.compile(r'"(ts|correlation|External id)": ("?)([\d.]+)\2')


def tiled(document: dict[str, Any], size_bytes: int) -> Iterator[str]:
    """Text of a document whose events are repeated, shifted, in the layout of Kineto's exporter."""
    events = document.pop("traceEvents")
    labels = [event for event in events if event.get("ph") == "M"]
    timed_events = [event for event in events if event.get("ph") in ("X", "s", "f") and event.get("cat") != "Trace"]
    begin = min(Decimal(str(event["ts"])) for event in timed_events)
    end = max(Decimal(str(event["ts"])) + Decimal(str(event.get("dur", 0))) for event in timed_events)
    span = int(end - begin) + 1000
    numbers = 1 + max(int(event.get("args", {}).get("correlation", 0)) for event in timed_events)
    numbers = max(numbers, 1 + max(int(event.get("args", {}).get("External id") or 0) for event in timed_events))
    templates = [[*_SHIFTED.split(_entry(event))] for event in timed_events]
    text = "{" + json.dumps(document, indent=2)[1:-2] + ',\n  "traceEvents": [\n' + ",\n".join(map(_entry, labels))
    yield text
    written, copy = len(text), 0
    while written < size_bytes:
        # The pattern's three groups follow each stretch of text: key, quote, value.
        text = "".join(",\n" + _shifted(template, copy, span, numbers) for template in templates)
        yield text
        written += len(text)
        copy += 1
    yield "\n  ]\n}\n"


def _shifted(template: list[str], copy: int, span: int, numbers: int) -> str:
    pieces = [template[0]]
    for at in range(1, len(template), 4):
        key, quote, value, after = template[at : at + 4]
        moved = Decimal(value) + copy * span if key == "ts" else int(value) + copy * numbers
        pieces.append(f'"{key}": {quote}{moved}{quote}{after}')
    return "".join(pieces)


def _entry(event: dict[str, Any]) -> str:
    top = json.dumps({key: value for key, value in event.items() if key not in ("ts", "dur", "args")})[1:-1]
    text = f"  {{\n    {top}"
    if "ts" in event:
        text += f',\n    "ts": {json.dumps(event["ts"])}'
    if "dur" in event:
        text += f', "dur": {json.dumps(event["dur"])}'
    if "args" in event:
        text += f',\n    "args": {{\n      {json.dumps(event["args"])[1:-1]}\n    }}'
    return text + "\n  }"


if __name__ == "__main__":
    main()
