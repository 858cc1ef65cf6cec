"""The table of ``gpu_check.sh``, and its small reference captures.

    python -m scripts.gpu.gpu_table OUT

Reads ``OUT/captures/NAME.json`` (budgets) and ``OUT/analyses/NAME.json``, prints a row for each beside the published figures, and
copies traces below 200 kB to ``OUT/reference``, without host names and folders of the machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from itertools import product
from pathlib import Path
from typing import Any

MODES = ("eager", "compiled", "reduce-overhead")
WORKLOADS = ("split_stack", "combined", "gelu", "add1")
ROWS = [("training", "run"), *product(WORKLOADS, MODES)]

# GPUPuzzlers, fusion, answer (A100 40 GB): wall of split_stack, speed-ups over it, time of the kernels; ns.
PUBLISHED_WALL_NS = {
    ("split_stack", "eager"): 1_613_000,
    ("combined", "eager"): 198_000,
    ("split_stack", "compiled"): round(1_613_000 / 2.5),
    ("combined", "compiled"): round(1_613_000 / 10.3),
}
PUBLISHED_BUSY_NS = {
    ("split_stack", "eager"): 188_000,
    ("combined", "eager"): 66_000,
    ("combined", "compiled"): 26_000,
}
LARGEST_BYTES = 200_000
KEPT = ("schemaVersion", "deviceProperties", "distributedInfo", "with_stack", "record_shapes", "cuda_runtime_version")

# The folders before a file's name; "a / b" and "aten::div" hold none.
FOLDERS = re.compile(r"(?<![\w./])/(?:[^\s/\"'<>|;:,]+/)+")


def main(out: Path) -> int:
    """Print the table; 1 where no part of it could be measured."""
    print("| call | wall | device busy | idle | most blamed for the idle | kernels | latency | published wall | busy |")
    print("|---|---|---|---|---|---|---|---|---|")
    measured = 0
    for workload, mode in ROWS:
        name = f"{workload}-{mode}"
        budget = _read(out / "captures" / f"{name}.json")
        if budget is None:
            print(f"| {workload}, {mode} | not measured: {_reason(out, name)} | | | | | | | |")
            continue
        measured += 1
        print(_row(workload, mode, budget))
        _keep(out, name)
    return 0 if measured else 1


def _row(workload: str, mode: str, budget: dict[str, Any]) -> str:
    wall_ns, device = budget["wall"]["ns"], _device(budget["device"])
    cells = [f"{workload}, {mode}", _us(wall_ns)]
    if device is None:
        cells += ["no device work in the trace", "", "", "", ""]
    else:
        blame, ns = max(device["idle_blame"].items(), key=lambda item: item[1])
        cells += [
            f"{_us(device['busy_ns'])} ({device['busy_ns'] / wall_ns:.0%})",
            _us(device["idle_ns"]),
            f"{blame} {_us(ns)}",
            f"{device['events_per_call']:.3g}",
            _us(device["launch"]["median_ns"]),
        ]
    busy_ns = None if device is None else device["busy_ns"]
    cells += [
        _beside(wall_ns, PUBLISHED_WALL_NS.get((workload, mode))),
        _beside(busy_ns, PUBLISHED_BUSY_NS.get((workload, mode))),
    ]
    return "| " + " | ".join(cells) + " |"


def _device(device: dict[str, Any] | None) -> dict[str, Any] | None:
    """The device of a call; of a run the first one, in the same words."""
    if device is None or "devices" not in device:
        return device
    first = device["devices"][0]
    return {**first, "events_per_call": first["events"], "launch": {"median_ns": first["launch_median_ns"]}}


def _beside(ns: float | None, published_ns: int | None) -> str:
    return "" if ns is None or published_ns is None else f"{_us(published_ns)} ({ns / published_ns:.2f}x)"


def _us(ns: float) -> str:
    return f"{ns / 1000:,.1f} µs"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return document


def _reason(out: Path, name: str) -> str:
    path = out / "captures" / f"{name}.error"
    lines = path.read_text().strip().splitlines() if path.exists() else []
    return lines[-1].replace("|", "/") if lines else "no reason was given"


def _keep(out: Path, name: str) -> None:
    """A small trace without what tells of the machine."""
    source = out / "captures" / name / "kineto.json.gz"
    if not source.exists() or source.stat().st_size > LARGEST_BYTES:
        return
    with gzip.open(source) as file:
        document = json.load(file)
    kept = {key: document[key] for key in KEPT if key in document}
    scrubbed = _without_folders({**kept, "traceEvents": document["traceEvents"]})
    with gzip.GzipFile(out / "reference" / f"{name}.json.gz", "wb", mtime=0) as packed:
        packed.write(json.dumps(scrubbed, separators=(",", ":")).encode())


def _without_folders(value: Any) -> Any:
    """The JSON value with every path cut to its last part: a Triton kernel's trace names the file it was written to."""
    if isinstance(value, str):
        return FOLDERS.sub("", value)
    if isinstance(value, list):
        return [_without_folders(each) for each in value]
    if isinstance(value, dict):
        return {key: _without_folders(each) for key, each in value.items()}
    return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    sys.exit(main(parser.parse_args().out))
