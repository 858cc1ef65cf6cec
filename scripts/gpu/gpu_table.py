"""The table of ``gpu_check.sh``, the result that documentation shows, and small reference captures.

    python -m scripts.gpu.gpu_table OUT

Reads ``OUT/captures/NAME.json`` (budgets), prints a row for each beside the published figures and writes them to ``OUT/gpu.json``
(``docs/results/gpu.json``). Copies the captures of ``REFERENCES`` to ``OUT/reference`` (``traces/reference``), without host names
and folders of the machine; a run only with the first of its recorded steps.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shlex
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from scripts.documentation.reference_captures import keep
from scripts.results import Cell, Claim, Origin, Table, columns_of

MODES = ("eager", "compiled", "reduce-overhead")
WORKLOADS = ("split_stack", "combined", "add1", "gelu")
ROWS = [("training", "run"), *product(WORKLOADS, MODES)]
REFERENCES = {"training-run": "gpu-run", "add1-eager": "gpu-call"}
STEPS_KEPT = 10

# GPUPuzzlers, fusion, answer (A100 40 GB): wall of split_stack, speed-ups over it, time of the kernels; ns.
PUBLISHED_WALL_NS = {
    ("split_stack", "eager"): 1_613_000,
    ("combined", "eager"): 198_000,
    ("split_stack", "compiled"): round(1_613_000 / 2.5),
    ("combined", "compiled"): round(1_613_000 / 10.3),
}
PUBLISHED_BUSY_NS = {("split_stack", "eager"): 188_000, ("combined", "eager"): 66_000, ("combined", "compiled"): 26_000}
CLAIM = Claim(
    claim="gpu",
    question="How long do calls and a training step take on a GPU, and why is the device idle?",
    method=(
        "`run` measures a training step (8 linear layers of 512, batch 256, AdamW), `profile --quick` each call. "
        "The wall is unprofiled, busy time that of the recorded steps or calls, and idle time the rest. "
        "Published are the walls and kernel times of an A100."
    ),
    command="scripts/gpu/gpu_check.sh OUT",
    columns=columns_of(
        "of | mode | wall [ns] | device busy [ns] | idle [ns] | idle mostly for | for that [ns] | launches | "
        "launch latency, median [ns] | published wall [ns] | published busy [ns]"
    ),
    about=("overhead_lens/instruments", "overhead_lens/program", "overhead_lens/studies/run", "overhead_lens/budget"),
)


def main(out: Path) -> int:
    """Print the table and write the result; 1 where no part of it could be measured."""
    budgets = {which: _read(out / "captures" / f"{'-'.join(which)}.json") for which in ROWS}
    for which, budget in budgets.items():
        if budget is None:
            print(f"{'-'.join(which)}: not measured: {_reason(out, '-'.join(which))}")
    rows = [_row(which, budget) for which, budget in budgets.items() if budget is not None]
    if not rows:
        return 1
    table = Table(CLAIM)
    table.add(*rows)
    table.write(out / f"{CLAIM.claim}.json", origin=_origin(out))
    for name, reference in REFERENCES.items():
        if (out / "captures" / name / "meta.json").exists():
            _copy_reference(out / "captures" / name, out / "reference" / reference, out)
    return 0


def _row(which: tuple[str, str], budget: Mapping[str, Any]) -> tuple[Cell, ...]:
    device = _device(budget["device"])
    blame: tuple[Cell, Cell] = (None, None)
    if device is not None:
        blame = max(device["idle_blame"].items(), key=lambda item: item[1])
    figures = [None] * 4 if device is None else [device[key] for key in ("busy_ns", "idle_ns", "launches", "median_ns")]
    published = PUBLISHED_WALL_NS.get(which), PUBLISHED_BUSY_NS.get(which)
    return (*which, round(budget["wall"]["ns"]), *figures[:2], *blame, *figures[2:], *published)


def _device(device: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The device of a call; of a run the first one, in the same words."""
    if device is None:
        return None
    if "devices" in device:
        first = device["devices"][0]
        return {**first, "median_ns": first["launch_median_ns"]}
    return {**device, "launches": device["launch"]["per_call"], "median_ns": device["launch"]["median_ns"]}


def _origin(out: Path) -> Origin:
    """When and where the captures were recorded, by the first call's own account."""
    paths = sorted((out / "captures").glob("*/meta.json"))
    metas = [meta for meta in (json.loads(path.read_text()) for path in paths) if meta["environment"].get("gpu")]
    if not metas:
        return Origin.here()
    environment = metas[0]["environment"]
    return Origin(
        measured_on=metas[0]["started"][:10],
        machine=f"{environment['gpu']}, {environment['cpu']}, {environment['cores']} cores",
        torch=environment["torch"],
        python=environment["python"],
        revision=(environment.get("git_commit") or "")[:7],
    )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return document


def _reason(out: Path, name: str) -> str:
    path = out / "captures" / f"{name}.error"
    lines = path.read_text().strip().splitlines() if path.exists() else []
    return lines[-1] if lines else "no reason was given"


def _copy_reference(recorded: Path, target: Path, out: Path) -> None:
    """Copy a capture without what identifies the machine."""
    command = json.loads((recorded / "meta.json").read_text())["command"]
    keep(recorded, target, shlex.split(command), out)
    trace = target / "kineto.json.gz"
    document = json.loads(gzip.decompress(trace.read_bytes()))
    document["traceEvents"] = _first_steps(document["traceEvents"])
    trace.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0))


def _first_steps(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events of the first recorded steps and the device work that they launched; all, where there are no more steps."""
    steps = [
        each for each in events if each.get("cat") == "user_annotation" and each["name"].startswith("ProfilerStep#")
    ]
    if len(steps) <= STEPS_KEPT:
        return events
    end = sorted(each["ts"] + each["dur"] for each in steps)[STEPS_KEPT - 1]
    calls = [each for each in events if str(each.get("cat")).startswith("cuda_") and each["ts"] < end]
    launched = {each["args"]["correlation"] for each in calls}
    return [
        each
        for each in events
        if each["ph"] == "M"
        or (each["args"].get("correlation") in launched if "stream" in each.get("args", {}) else each["ts"] < end)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT")
    sys.exit(main(parser.parse_args().out))
