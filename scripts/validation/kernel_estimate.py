"""How long does an operator take before its kernel, compared with a view? Do traces divided by that agree with samples?

python -m scripts.validation.kernel_estimate [--result FILE] [--agreement FILE]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from overhead_lens.readers.recording import read_recording
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from overhead_lens.traces.host_budget import view_ns
from scripts.benchmarks.repeat import overlap
from scripts.command import document
from scripts.results import Cell, Claim, Table, columns_of

_COMMAND = "python -m scripts.validation.kernel_estimate"
_LABORATORY = Path(__file__).with_name("laboratory")
_RECORDED = ((), ("record_shapes",), ("with_stack",), ("record_shapes", "with_stack", "profile_memory"))
_CALLS = ("training_of_16", "training_of_128", "transformer_layer")

CLAIM = Claim(
    claim="dispatch-floor",
    question="How long does an operator take before its kernel begins?",
    method=(
        "Operators are called on tensors of one element, which leaves their kernels nothing to do, and recorded. "
        "Each one's median self time is divided by that of the trace's views. "
        "Operators that only call others are left out."
    ),
    command=_COMMAND,
    columns=columns_of(
        "recorded with | view [ns] | operators"
        " | 2.5 % of them below, times a view | half of them below, times a view | 97.5 % of them below, times a view"
    ),
)

AGREEMENT = Claim(
    claim="kernel-estimate",
    question="Do traces whose operators are divided by an estimate agree with samples?",
    method=(
        "`profile` samples a call and records it in other blocks of the same processes. "
        "The recording is given to `analyze`, which sees no sample. "
        "They agree where the intervals of kernel meet."
    ),
    command=_COMMAND,
    columns=columns_of(
        "call | kernel by samples [share] | kernel by samples low [share] | kernel by samples high [share]"
        " | kernel by trace [share] | kernel by trace low [share] | kernel by trace high [share] | agree"
    ),
)

CLAIMS = (CLAIM, AGREEMENT)


def main() -> None:
    """Record and profile, print both tables and write the results."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--agreement", type=Path, metavar="FILE", help="where the result of the comparison goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="overhead_lens_") as folder:
        floors = Table(CLAIM)
        for recorded in _RECORDED:
            floors.add(floor_row(Path(folder), recorded))
        floors.write(options.result)
        agreements = Table(AGREEMENT)
        for call in _CALLS:
            agreements.add(agreement_row(Path(folder), call))
        agreements.write(options.agreement)


def floor_row(folder: Path, options: tuple[str, ...]) -> list[Cell]:
    """Record one-element operators with some options, and compare them with the views."""
    trace = folder / "one_element.json"
    subprocess.run([sys.executable, str(_LABORATORY / "one_element.py"), str(trace), *options], check=True)
    analyzer = Analyzer(read_recording(trace), default_classifier())
    timeline = next(iter(analyzer.threads.values())).timeline
    view = view_ns([timeline])
    assert view is not None
    names, computes = timeline.host.name[timeline.events], timeline.computes
    times = [
        float(np.median(timeline.self_ns[computes & (names == name)])) / view for name in np.unique(names[computes])
    ]
    return [
        ", ".join(options) or "nothing besides",
        view,
        len(times),
        *(round(float(part), 1) for part in np.percentile(times, (2.5, 50, 97.5))),
    ]


def agreement_row(folder: Path, call: str) -> list[Cell]:
    """Profile a call, and analyze what was recorded of it."""
    capture = folder / call
    profiled = document("profile", f"{_LABORATORY / 'small_work.py'}:{call}", "-o", capture, "--quiet", folder=folder)
    (analyzed,) = document("analyze", capture / "kineto.json.gz", folder=folder)["traces"]
    estimates = []
    for rows, wall_ns in (
        (profiled["host"], profiled["wall"]["ns"]),
        (analyzed["host"], analyzed["window"]["wall_ns"]),
    ):
        (kernel,) = (row for row in rows if row["category"] == "kernel")
        estimates.append([round(value / wall_ns, 3) for value in (kernel["ns"], *kernel["ci95_ns"])])
    samples, trace = estimates
    return [call, *samples, *trace, overlap(samples[1:], trace[1:])]


if __name__ == "__main__":
    main()
