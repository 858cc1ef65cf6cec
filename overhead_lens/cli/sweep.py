"""``overhead-lens sweep``: overhead and rate of each implementation, and from which size on which one is the fastest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from overhead_lens.errors import UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.call import CallOptions
from overhead_lens.terminal.command import argument, option, refuse_on_windows
from overhead_lens.terminal.completion import complete_parameter, complete_target

if TYPE_CHECKING:
    from overhead_lens.target import Target


def sweep(
    targets: Annotated[
        list[str],
        argument(
            "TARGET",
            "A scenario (built-in name or .py file), or several of its variants (NAME:VARIANT).",
            complete_target,
        ),
    ],
    param: Annotated[list[str] | None, option("-p --param NAME=VALUES", autocompletion=complete_parameter)] = None,
    all_variants: Annotated[bool, option("--all-variants")] = False,
    compile_: given.Compile = False,
    mode: given.Mode = None,
    device: given.Device = None,
    quick: given.Quick = False,
    timeout: given.Timeout = given.TIMEOUT_S,
    output: Annotated[Path | None, option("-o --output DIR", "sweep")] = None,
    html: given.Html = None,
    json_: Annotated[bool, option("--json", "sweep")] = False,
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Time variants over sizes and fit time = overhead + n / rate."""
    from overhead_lens.studies.sweep.analysis import sweep_of
    from overhead_lens.studies.sweep.record import QUICK, STANDARD, SweepRequest, record_sweep
    from overhead_lens.terminal.output import Format, show
    from overhead_lens.terminal.progress import announcement, progress

    refuse_on_windows("sweep", "; sweeps made there can be read here")
    target, variants = scenario_of(targets, all_variants=all_variants)
    fixed, swept = split(given.assignments(param or [], device))
    options = CallOptions(compiles=compile_, mode=mode).compile_options
    request = SweepRequest(
        target=target,
        variants=variants,
        params=fixed,
        swept=swept,
        # Without this, Dynamo would compile the second size for all sizes.
        compile_options=None if options is None else {"dynamic": False, **options},
        output=output,
        timeout_s=timeout,
        effort=QUICK if quick else STANDARD,
    )
    with progress(quiet=quiet, begins=announcement(" ".join(targets))) as listener:
        folder = record_sweep(request, listener)
        measured = sweep_of(folder)
    show(measured, Format(json_, html, force=force))


def scenario_of(targets: list[str], *, all_variants: bool) -> tuple[Target, list[str | None] | None]:
    """The one scenario of the targets and their variants; None for all variants.

    Raises:
        UsageError: The targets are of several scenarios, or some variants are named with ``--all-variants``.
    """
    from overhead_lens.target import parse_target

    parsed = [parse_target(text) for text in targets]
    for text, target in zip(targets, parsed, strict=True):
        if target.file is None:
            raise UsageError(f"{text} is a plain function, which has no size to sweep: write a scenario for it")
    if len({target.file for target in parsed}) > 1:
        raise UsageError(f"a sweep takes one scenario, not {' and '.join(targets)}")
    named = [target.name for target in parsed]
    if all_variants and any(named):
        raise UsageError(f"--all-variants and {targets[0]} disagree: leave the variant out, or the option")
    return replace(parsed[0], name=None), None if all_variants else named


def split(assigned: dict[str, str]) -> tuple[dict[str, str], dict[str, list[int]]]:
    """Parameters that stay, and those with several values, by name.

    Raises:
        UsageError: None has several values, or they are not integers, or not different.
    """
    swept = {name: _integers(name, text) for name, text in assigned.items() if "," in text}
    if not swept:
        raise UsageError("nothing to sweep: give at least two values of an integer parameter, -p n=100,1000,10000")
    return {name: text for name, text in assigned.items() if name not in swept}, swept


def _integers(name: str, text: str) -> list[int]:
    try:
        values = [int(value) for value in text.split(",")]
    except ValueError:
        raise UsageError(f"the values of {name} must be integers with commas between them, not {text!r}") from None
    if len(set(values)) < len(values):
        raise UsageError(f"the values of {name} must be distinct, not {text!r}")
    return values
