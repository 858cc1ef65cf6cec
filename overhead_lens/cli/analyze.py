"""``overhead-lens analyze``: the budget of traces that torch.profiler exported, anywhere."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from overhead_lens.errors import EXIT_USAGE, UsageError
from overhead_lens.terminal.arguments import Force, Html, Quiet, Rules, between, new_file
from overhead_lens.terminal.command import argument, deprecated, option, refuse

if TYPE_CHECKING:
    from overhead_lens.readers.recording import Reading
    from overhead_lens.taxonomy.classifier import Classifier
    from overhead_lens.terminal.output import Format
    from overhead_lens.traces.model import TraceAnalysis, TraceFailure


_MOST_DIGITS = 12
_COMPILES = "compiling the reader of large traces, once on this machine: up to 20 s"
_TRACES = (".json", ".json.gz")

# M_MMAP_MAX, M_TRIM_THRESHOLD and M_ARENA_MAX of glibc's malloc.h: all arrays on one heap, which never shrinks.
_ONE_HEAP = ((-4, 0), (-1, -1), (-8, 1))


def analyze(
    context: typer.Context,
    traces: Annotated[
        list[Path], argument("TRACE", "Exported traces (plain or gzipped), memory snapshots, or directories of traces.")
    ],
    query: Annotated[str | None, option("--query SQL")] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what changed from the first trace to the second.", hidden=True)
    ] = False,
    batch_sizes: Annotated[str | None, option("--batch-sizes N,N,...")] = None,
    tokens_per_step: Annotated[int | None, option("--tokens-per-step N", callback=between(1, 1_000_000_000))] = None,
    critical_path: Annotated[bool, option("--critical-path")] = False,
    dask: Annotated[str | None, option("--dask SCHEDULER")] = None,
    rules: Rules = None,
    whole: Annotated[bool, option("--all")] = False,
    html: Html = None,
    pftrace: Annotated[Path | None, option("--pftrace FILE", callback=new_file)] = None,
    parquet: Annotated[Path | None, option("--parquet DIR")] = None,
    json_: Annotated[bool, option("--json", "analysis")] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Show where the time of recorded torch.profiler traces goes, and why the device was idle."""
    from overhead_lens.readers.recording import begin_reading

    _check_combination(context.params)
    paths = find_traces(traces)
    if not diff:
        # A trace that is named twice is one, not two ranks.
        paths = list(dict.fromkeys(paths))
    sizes = _batch_sizes(batch_sizes, len(paths))
    _keep_freed_memory()
    begun = {}
    if query is None and not (diff or pftrace or dask):
        # Read aside, while this thread imports what takes as long.
        begun[paths[0]] = begin_reading(paths[0])
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.terminal.output import Format, show

    classifier = default_classifier(rules)
    form = Format(json_, html, classifier, whole, force)
    if query is not None or diff:
        refuse(context, f"with --{'diff' if diff else 'query'}", "whole")
    if diff:
        if len(paths) != 2:
            raise UsageError(f"--diff takes two traces, not {len(paths)}")
        deprecated("analyze --diff", "overhead-lens diff")
        from overhead_lens.stored import compare_traces

        show(compare_traces(paths[0], paths[1], classifier), form)
    elif query is not None:
        _show_query(query, paths, classifier, critical_path=critical_path, form=form)
    else:
        if parquet is not None:
            from overhead_lens.export.parquet import check_directory

            check_directory(parquet)
        results = _analyzed(paths, dask, pftrace, rules, begun, critical_path=critical_path, quiet=quiet)
        if tokens_per_step is not None:
            results = [_with_tokens(result, tokens_per_step) for result in results]
        _show_analyses(results, parquet, sizes, form=form)


def _keep_freed_memory() -> None:
    """Let the next arrays have the memory of freed ones, which Linux would take back and clear before."""
    with contextlib.suppress(AttributeError):  # not glibc
        if sys.platform == "linux":
            mallopt = ctypes.CDLL(None).mallopt
            for parameter, value in _ONE_HEAP:
                mallopt(parameter, value)


def find_traces(given: Sequence[Path]) -> list[Path]:
    """The files, and for a directory the traces in it, by name.

    Raises:
        UsageError: A path does not exist, or a directory holds no trace.
    """
    files: list[Path] = []
    for path in given:
        if path.is_dir():
            from overhead_lens.captures.directory import fields_of

            if str(fields_of(path).get("schema")).startswith("overhead-lens/"):
                raise UsageError(
                    f"{path} is a stored result, which `overhead-lens report` shows; or name a trace in it"
                )
            inside = sorted(file for file in path.iterdir() if file.is_file() and file.name.lower().endswith(_TRACES))
            if not inside:
                raise UsageError(f"{path} holds no traces (*.json, *.json.gz)")
            files += inside
        elif path.exists():
            files.append(path)
        else:
            raise UsageError(f"{path} does not exist")
    return files


def _batch_sizes(given: str | None, traces: int) -> Sequence[int] | Literal["shapes"] | None:
    """Parse ``--batch-sizes``."""
    if given is None:
        return None
    if given == "shapes":
        return "shapes"
    sizes = [int(size) for size in given.split(",") if size.strip().isdecimal() and len(size) <= _MOST_DIGITS]
    if len(sizes) != given.count(",") + 1 or min(sizes) < 1:
        raise UsageError(f"--batch-sizes takes whole numbers with commas between them, or 'shapes', not {given!r}")
    if len(sizes) != traces:
        raise UsageError(f"--batch-sizes takes one size for each trace, not {len(sizes)} for {traces}")
    return sizes


def _with_tokens(result: TraceAnalysis | TraceFailure, tokens: int) -> TraceAnalysis | TraceFailure:
    """Kernels per token where the trace itself does not tell them."""
    from dataclasses import replace

    from overhead_lens.traces.launch_figures.analysis import per_token
    from overhead_lens.traces.model import TraceFailure

    if isinstance(result, TraceFailure):
        return result
    return replace(result, launch_figures=tuple(per_token(device, tokens) for device in result.launch_figures))


def _check_combination(options: Mapping[str, object]) -> None:
    """Refuse options that cannot go together."""
    given = {name for name, value in options.items() if value}
    for one, others in (
        ("diff", {"query", "pftrace", "dask", "parquet", "batch_sizes", "tokens_per_step", "critical_path"}),
        ("query", {"pftrace", "dask", "parquet", "html", "batch_sizes", "tokens_per_step"}),
        ("pftrace", {"dask"}),
    ):
        clash = sorted(others & given)
        if one in given and clash:
            raise UsageError(f"--{one} and --{clash[0].replace('_', '-')} do not go together")


def _analyzed(
    paths: Sequence[Path],
    dask: str | None,
    pftrace: Path | None,
    rules: Path | None,
    begun: Mapping[Path, Reading],
    *,
    critical_path: bool,
    quiet: bool,
) -> list[TraceAnalysis | TraceFailure]:
    """The analyses in the order of the paths."""
    from overhead_lens.readers.recording import compiles_first
    from overhead_lens.terminal.progress import progress

    begins = _COMPILES if any(map(compiles_first, paths)) else ""
    with progress(quiet=quiet, begins=begins) as listener:
        if pftrace is not None:
            from overhead_lens.export.perfetto.analysis import write_analysis_perfetto
            from overhead_lens.readers.recording import read_recording
            from overhead_lens.taxonomy.classifier import default_classifier
            from overhead_lens.traces.pieces import analyze_over_time

            if len(paths) != 1:
                raise UsageError(f"--pftrace draws one trace, not {len(paths)}")
            recording, classifier = read_recording(paths[0]), default_classifier(rules)
            analyzed = analyze_over_time(recording, classifier, critical_path=critical_path)
            write_analysis_perfetto(pftrace, analyzed)
            return [analyzed.analysis]
        from overhead_lens.traces.job import cluster

        listener.begin(len(paths))
        results = (
            cluster.analyze_here(paths, rules, begun, critical_path=critical_path)
            if dask is None
            else cluster.analyze_on(dask, paths, rules, critical_path=critical_path)
        )
        by_path = {}
        for result in results:
            by_path[result.path] = result
            listener.step(Path(result.path).name)
    return [by_path[str(path)] for path in paths]


def _show_analyses(
    results: Sequence[TraceAnalysis | TraceFailure],
    parquet: Path | None,
    sizes: Sequence[int] | Literal["shapes"] | None,
    *,
    form: Format,
) -> None:
    from overhead_lens.terminal.output import show
    from overhead_lens.traces.job.ranks import Job
    from overhead_lens.traces.model import TraceFailure

    if parquet is not None:
        from overhead_lens.export.parquet import write_parquet

        write_parquet(parquet, results)
    failures = [result for result in results if isinstance(result, TraceFailure)]
    if len(failures) == len(results) == 1:
        raise UsageError(failures[0].error)
    if sizes is None:
        show(Job.of(results), form)
    else:
        show(Job.of_batches(results, None if sizes == "shapes" else sizes), form)
    if len(failures) == len(results):
        raise UsageError(f"none of the {len(results)} traces could be read")
    if failures:
        raise typer.Exit(EXIT_USAGE)


def _show_query(
    query: str, paths: Sequence[Path], classifier: Classifier, *, critical_path: bool, form: Format
) -> None:
    from overhead_lens.export.query import run_query
    from overhead_lens.readers.recording import read_recording
    from overhead_lens.terminal.output import print_rows, show_rows
    from overhead_lens.traces.pieces import analyze_over_time

    if not query.strip():
        raise UsageError(
            "--query needs SQL, for example: select name, sum(dur_ns) from kernels group by 1 order by 2 desc"
        )
    with_path = critical_path or "critical_path" in query.lower()
    analyzed = [analyze_over_time(read_recording(path), classifier, critical_path=with_path) for path in paths]
    answer = run_query(query, analyzed)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    show_rows(rows, form, lambda console: print_rows(console, answer.columns, answer.rows))
