"""``overhead-lens compare``: measure two things in turns and say which is slower, by how much and why."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from overhead_lens.errors import EXIT_REGRESSION, UsageError
from overhead_lens.terminal.arguments import (
    TIMEOUT_S,
    Device,
    Inputs,
    Quiet,
    Rules,
    Timeout,
    directory_option,
    json_option,
)

if TYPE_CHECKING:
    from overhead_lens.machine.request import Effort, Request
    from overhead_lens.target import Target

DELTA = "delta.json"


def compare(
    base: Annotated[str, typer.Argument(help='A target with options of profile, in quotes: "add1 -p size=3".')],
    new: Annotated[str, typer.Argument(help='What may be slower: "add1 --compile -p size=3".')],
    inputs: Inputs = None,
    compile_: Annotated[bool, typer.Option("--compile", help="Measure torch.compile of both.")] = False,
    mode: Annotated[str | None, typer.Option(help="torch.compile's mode on both sides.")] = None,
    device: Device = None,
    param: Annotated[list[str] | None, typer.Option("-p", "--param", help="NAME=VALUE on both sides.")] = None,
    python: Annotated[
        list[str] | None,
        typer.Option("--python", help="old=PATH or new=PATH: the interpreter of a side; it needs torch."),
    ] = None,
    rev: Annotated[
        list[str] | None, typer.Option("--rev", help="old=REV or new=REV: the git revision of a side's .py file.")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Fresh processes of each side; 12, or 8 that compile six times each.", min=3, max=10_000),
    ] = None,
    margin: Annotated[
        float, typer.Option(help="Percent of the base's wall time that count as no difference.", min=0.0, max=100.0)
    ] = 1.0,
    output: Annotated[Path | None, directory_option("two captures")] = None,
    rules: Rules = None,
    timeout: Timeout = TIMEOUT_S,
    json_: Annotated[bool, json_option("difference")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure two things in turns; exit 1 when the second is slower."""
    from overhead_lens.captures.directory import recording_directory, release_directory
    from overhead_lens.cli import sides
    from overhead_lens.comparison.difference import compare_budgets
    from overhead_lens.export.capture import draw
    from overhead_lens.recorder.paired import PAIRED, PAIRED_COMPILED, record_pair
    from overhead_lens.report.forms import to_json
    from overhead_lens.stored import budgets_of
    from overhead_lens.target import parse_target
    from overhead_lens.taxonomy.categories import default_classifier
    from overhead_lens.terminal.output import Format, show
    from overhead_lens.terminal.progress import progress

    if sys.platform == "win32":
        raise UsageError("compare measures on Linux and macOS only; captures made there can be compared here by diff")
    classifier = default_classifier(rules)
    own = [sides.parse_side(text) for text in (base, new)]
    common = argparse.Namespace(compile=compile_, mode=mode, device=device, param=param or [])
    workloads = [sides.workload_of(side, common) for side in own]
    effort = PAIRED if all(options is None for _, options in workloads) else PAIRED_COMPILED
    effort = replace(effort, processes=rounds or effort.processes)
    interpreters = {name: sides.interpreter(path) for name, path in sides.by_side("--python", python or []).items()}
    targets = [parse_target(side.target, side.inputs or inputs) for side in own]
    with ExitStack() as stack:
        targets = stack.enter_context(sides.revisions(targets, sides.by_side("--rev", rev or [])))
        requests = [
            _request(target, workload, interpreters.get(name, sys.executable), effort, timeout)
            for target, workload, name in zip(targets, workloads, ("old", "new"), strict=True)
        ]
        folder = stack.enter_context(recording_directory(output, Path("traces"), f"compare-{_label(targets)}"))
        listener = stack.enter_context(progress(quiet=quiet))
        paths = record_pair(requests[0], requests[1], folder, listener)
        listener.step("analyzing")
        budgets = budgets_of(paths, classifier)
        delta = compare_budgets(budgets[0], budgets[1], margin / 100)
        (folder / DELTA).write_text(f"{to_json(delta)}\n", encoding="utf-8")
        release_directory(folder)
    show(delta, Format.asked(json=json_))
    for path, budget in zip(paths, budgets, strict=True):
        draw(path, budget.breakdown, classifier)
    if delta.verdict == "slower":
        raise typer.Exit(EXIT_REGRESSION)


def _request(
    target: Target,
    workload: tuple[dict[str, str], dict[str, str] | None],
    python: str,
    effort: Effort,
    timeout_s: float,
) -> Request:
    from overhead_lens.machine.request import Request

    params, options = workload
    return Request(
        target=target,
        params=params,
        compile_options=options,
        output=None,
        parent=Path("traces"),
        timeout_s=timeout_s,
        effort=effort,
        command=("overhead-lens", *sys.argv[1:]),
        python=python,
    )


def _label(targets: Sequence[Target]) -> str:
    """What both sides are called in the name of their directory."""
    return "-".join(dict.fromkeys(target.label for target in targets))
