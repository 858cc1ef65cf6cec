"""The public API: what ``import overhead_lens`` offers, lazily."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

from overhead_lens.budget.make import Budget
from overhead_lens.budget.model import Breakdown
from overhead_lens.captures.directory import recording_directory, release_directory
from overhead_lens.captures.files import DELTA
from overhead_lens.comparison.difference import MARGIN_SHARE, compare_budgets
from overhead_lens.comparison.model import Delta
from overhead_lens.directories import load_directory
from overhead_lens.documents.delta import delta_document
from overhead_lens.errors import UsageError
from overhead_lens.machine.process import IN_WORKER
from overhead_lens.machine.request import CAPTURES, QUICK, STANDARD, Effort, Listener, Request
from overhead_lens.readers.recording import read_recording
from overhead_lens.recorder.fresh import NotFreshError, check_state, pickled, target_of
from overhead_lens.recorder.here import record_here
from overhead_lens.recorder.paired import paired_effort, record_pair
from overhead_lens.recorder.single import record
from overhead_lens.remedies.reached import values_of
from overhead_lens.scenario import Arguments
from overhead_lens.stored import budget_of, budgets_of, compare_captures
from overhead_lens.studies.advise.analysis import Advice, advice_of
from overhead_lens.studies.advise.record import record_advice
from overhead_lens.studies.attach.analysis import ProcessBudget, process_of
from overhead_lens.studies.attach.record import AttachRequest, record_process
from overhead_lens.studies.check.record import record_counts
from overhead_lens.studies.ladder.analysis import Ladder
from overhead_lens.studies.run.analysis import RunBudget
from overhead_lens.studies.run.job import RunJob
from overhead_lens.studies.sweep.analysis import Sweep
from overhead_lens.target import Target, name_of
from overhead_lens.taxonomy.classifier import Classifier, default_classifier
from overhead_lens.terminal.arguments import TIMEOUT_S
from overhead_lens.terminal.command import refuse_on_windows
from overhead_lens.terminal.progress import progress
from overhead_lens.traces.analyzer import analyze_trace
from overhead_lens.traces.model import TraceAnalysis
from overhead_lens.worker.load import VALUES

_COUNTED_FRESH = "instructions are counted in a fresh process"

Comparable: TypeAlias = Breakdown | str | os.PathLike[str]
Stored: TypeAlias = Advice | Breakdown | ProcessBudget | RunBudget | RunJob | Ladder | Sweep | Delta


def profile(
    fn: Callable[..., Any],
    /,
    *args: Any,
    compile: bool = False,
    quick: bool = False,
    fresh: bool = False,
    **kwargs: Any,
) -> Breakdown:
    """Measure ``fn(*args, **kwargs)`` and say where its time goes.

    A function of an imported module, with arguments that can be pickled, is measured in fresh processes. Everything else is
    measured in this process: lambdas, methods, functions of the started script itself (unless ``fresh``), and any call under
    ``torch.no_grad()``, inference mode, autocast, anomaly detection, deterministic algorithms, a lower precision of float32
    matrix products, or another default dtype or device. The capture is kept under ``traces/``.

    Args:
        fn: What is called.
        args: Its arguments.
        compile: Measure ``torch.compile(fn)``.
        quick: Half the time, wider intervals.
        fresh: Insist on fresh processes; they load the script of a function that it defines.
        kwargs: Its arguments by name.

    Raises:
        UsageError: The call fails, or ``fresh`` is given and is impossible.
        MeasurementError: It could not be measured here.

    Example:
        >>> import overhead_lens as ol
        >>> import torch
        >>> budget = ol.profile(torch.add, torch.ones(10), 1, quick=True)
        >>> sum(each.ns for each in budget.host) == budget.wall.ns
        True
    """
    with progress(quiet=False) as listener:
        effort = QUICK if quick else STANDARD
        path = record_call(fn, Arguments(args, kwargs), effort, listener, compile=compile, fresh=fresh)
        listener.step("analyzing")
        return budget_of(path, default_classifier()).breakdown


def record_call(
    function: Callable[..., Any],
    arguments: Arguments,
    effort: Effort,
    listener: Listener,
    *,
    compile: bool = False,
    fresh: bool = False,
    instructions: bool = False,
    counted_calls: int | None = None,
    output: Path | None = None,
) -> Path:
    """Record one capture of a call as ``profile`` does; returns its directory.

    Args:
        effort: Of several processes, or of this one alone.
        instructions: Count instructions as well, which needs fresh processes.
        counted_calls: Calls whose instructions are counted; None for as many as their time allows.
        output: Directory of the capture; None for a new one under ``traces``.

    Raises:
        UsageError: The call fails, or fresh processes are needed and cannot make it.
        MeasurementError: It could not be measured here.
    """
    _check_place("profile")
    with ExitStack() as stack:
        needed = "fresh=True" if fresh else _COUNTED_FRESH if instructions else ""
        try:
            target = _fresh_target(stack, function, arguments, needed)
        except NotFreshError:
            target = None
        # Loading a script runs it, so only on request.
        if target is None or (target.file is not None and not needed):
            name = name_of(function)
            here = Target(name, module=str(getattr(function, "__module__", "") or ""), name=name)
            request = _request(here, arguments, compile, replace(effort, processes=1), "profile")
            return record_here(replace(request, output=output), function, arguments, listener)
        request = replace(_request(target, arguments, compile, effort, "profile"), output=output)
        return record(replace(request, instructions=instructions, counted_calls=counted_calls), listener)


def count_call(
    function: Callable[..., Any],
    arguments: Arguments,
    calls: int | None,
    listener: Listener,
    *,
    compile: bool = False,
    output: Path | None = None,
) -> Path:
    """Count the instructions of a call and time nothing; arguments and result as of ``record_call``.

    Raises:
        UsageError: The call fails, or a fresh process cannot make it.
        MeasurementError: Nothing could be counted here.
    """
    _check_place("counting")
    with ExitStack() as stack:
        target = _fresh_target(stack, function, arguments, _COUNTED_FRESH)
        return record_counts(
            replace(_request(target, arguments, compile, QUICK, "profile"), output=output), calls, listener
        )


def compare(
    base: Callable[..., Any] | Comparable,
    new: Callable[..., Any] | Comparable,
    /,
    *args: Any,
    compile: bool = False,
    **kwargs: Any,
) -> Delta:
    """Say whether ``new`` is slower than ``base``, by how much, and which category is to blame.

    Two functions are measured in turns in fresh processes, both with the arguments that follow. Two results of ``profile``
    or two stored captures are compared without measuring.

    Args:
        base: A function, a result, or the directory of a capture.
        new: What may be slower, of the same kind.
        args: Arguments of both functions.
        compile: Measure ``torch.compile`` of both.
        kwargs: Arguments by name.

    Raises:
        UsageError: A function cannot be called by a fresh process, or the captures cannot be compared.
        MeasurementError: They could not be measured here.

    Example:
        >>> import overhead_lens as ol
        >>> delta = ol.compare("traces/reference/eager", "traces/reference/eager")
        >>> delta.wall_delta_ns, delta.blame
        (0, ())
    """
    if callable(base) and callable(new):
        _check_place("compare")
        return _compare_functions((base, new), Arguments(args, kwargs), compile=compile)
    if callable(base) or callable(new):
        raise UsageError("a function compares with a function, a capture with a capture")
    if args or kwargs or compile:
        raise UsageError("captures are compared as they are: leave out the other arguments")
    return compare_captures(_place(base), _place(new), default_classifier(), MARGIN_SHARE)


def advise(fn: Callable[..., Any], /, *args: Any, compile: bool = False, quick: bool = False, **kwargs: Any) -> Advice:
    """Try what would make ``fn(*args, **kwargs)`` faster, in fresh processes, and say what helps.

    Args:
        fn: What is called; a fresh process must be able to import it.
        args: Its arguments.
        compile: Whether the unmodified call is ``torch.compile(fn)``.
        quick: Fewer processes, wider intervals.
        kwargs: Its arguments by name.

    Raises:
        UsageError: The call fails, or a fresh process cannot make it.
        MeasurementError: It could not be measured here.
    """
    _check_place("advise")
    with ExitStack() as stack:
        arguments = Arguments(args, kwargs)
        target = _fresh_target(stack, fn, arguments, "remedies are tried in fresh processes")
        listener = stack.enter_context(progress(quiet=False))
        request = _request(target, arguments, compile, QUICK if quick else STANDARD, "advise")
        return advice_of(record_advice(request, None, default_classifier(), listener), default_classifier())


def analyze(path: str | os.PathLike[str], *, critical_path: bool = False) -> TraceAnalysis:
    """Analyze a trace that torch.profiler exported, plain or gzipped.

    Args:
        path: The trace.
        critical_path: Also find what decides how long each step takes.

    Raises:
        UsageError: The file is not a trace.

    Example:
        >>> import overhead_lens as ol
        >>> analysis = ol.analyze("traces/reference/eager/kineto.json.gz")
        >>> sum(each.ns for each in analysis.host) == analysis.window.wall_ns
        True
    """
    return analyze_trace(read_recording(Path(path)), default_classifier(), critical_path=critical_path)


def attach(pid: int, seconds: float = 20.0, *, subprocesses: bool = False) -> ProcessBudget:
    """Watch a running process, started without this program, and say where the time of its threads goes.

    The capture is kept under ``traces/``.

    Args:
        pid: The process; not this one.
        seconds: How long it is watched: 0.5 to 86,400.
        subprocesses: Watch its children, too.

    Raises:
        UsageError: There is no such process, it is not a Python process, or the time is out of range.
        MeasurementError: It cannot be watched here.
    """
    _check_place("attach")
    if not 0.5 <= seconds <= 86_400:
        raise UsageError(f"attach watches for 0.5 to 86,400 seconds, not {seconds}")
    request = AttachRequest(
        pid=pid, seconds=seconds, subprocesses=subprocesses, command=("overhead_lens.attach", str(pid))
    )
    with progress(quiet=False) as listener:
        return process_of(record_process(request, Event(), listener), default_classifier())


def load(path: str | os.PathLike[str]) -> Stored:
    """Load the result in a stored directory: a budget, watch, run, ladder, sweep, advice or difference.

    Raises:
        UsageError: It holds none of them.

    Example:
        >>> import overhead_lens as ol
        >>> ol.load("traces/reference/eager").subject.name
        'add1'
    """
    stored: Stored = load_directory(Path(path), default_classifier())
    return stored


@dataclass(frozen=True, slots=True)
class Compared:
    """Two captures recorded in turns, their budgets and the difference."""

    delta: Delta
    paths: Sequence[Path]
    budgets: Sequence[Budget]

    def draw(self, classifier: Classifier) -> None:
        """Draw the budget of each side for the Perfetto UI, beside its capture."""
        from overhead_lens.export.capture import draw

        for path, budget in zip(self.paths, self.budgets, strict=True):
            draw(path, budget.breakdown, classifier)


def measure_pair(
    requests: tuple[Request, Request],
    output: Path | None,
    classifier: Classifier,
    margin_share: float,
    listener: Listener,
) -> Compared:
    """Record two captures in turns into ``output``, or a new directory, and compare them.

    Raises:
        UsageError: A target or a parameter is wrong.
        MeasurementError: They could not be measured.
    """
    label = "-".join(dict.fromkeys(request.target.label for request in requests))
    with recording_directory(output, CAPTURES, f"compare-{label}") as folder:
        paths = record_pair(*requests, folder, listener)
        listener.step("analyzing")
        budgets = budgets_of(paths, classifier)
        delta = compare_budgets(budgets[0], budgets[1], margin_share)
        (folder / DELTA).write_text(f"{delta_document(delta).to_json()}\n", encoding="utf-8")
        release_directory(folder)
    return Compared(delta, paths, budgets)


def _compare_functions(
    functions: tuple[Callable[..., Any], Callable[..., Any]], arguments: Arguments, *, compile: bool
) -> Delta:
    with ExitStack() as stack:
        needed, effort = "functions are compared in fresh processes", paired_effort(compiles=compile)
        targets = [_fresh_target(stack, function, arguments, needed) for function in functions]
        base, new = (_request(target, arguments, compile, effort, "compare") for target in targets)
        listener = stack.enter_context(progress(quiet=False))
        return measure_pair((base, new), None, default_classifier(), MARGIN_SHARE, listener).delta


def _fresh_target(stack: ExitStack, function: Callable[..., Any], arguments: Arguments, needed: str) -> Target:
    """The target of fresh processes, its arguments in a file that ``stack`` removes; ``needed`` says why there must be one."""
    if not callable(function):
        kind = type(function).__qualname__
        raise UsageError(f"an object of type {kind} is not a function; `overhead-lens profile NAME` measures scenarios")
    try:
        check_state()
        target, content = target_of(function), pickled(arguments)
    except NotFreshError as error:
        if not needed:
            raise
        raise UsageError(f"{needed}: {error}") from None
    file = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="overhead-lens-")), "arguments.pickle")
    file.write_bytes(content)
    file.with_suffix(VALUES).write_text(json.dumps(values_of(function)), encoding="utf-8")
    return replace(target, arguments=file)


def _request(target: Target, arguments: Arguments, compiles: bool, effort: Effort, command: str) -> Request:
    torch = sys.modules.get("torch")
    threads = {} if torch is None else {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    # Workers search for modules where this process does, and last in the working directory.
    folders = [folder or str(Path.cwd()) for folder in (*sys.path, "") if isinstance(folder, str)]
    return Request(
        target=target,
        params={},
        compile_options={} if compiles else None,
        timeout_s=TIMEOUT_S,
        effort=effort,
        command=(f"overhead_lens.{command}", target.text),
        variables={"PYTHONPATH": os.pathsep.join(folders), **threads},
        has_arguments=bool(arguments.values),
    )


def _place(given: object) -> Path:
    if isinstance(given, Breakdown):
        return Path(given.capture)
    if isinstance(given, (str, os.PathLike)):
        return Path(given)
    raise UsageError(f"an object of type {type(given).__qualname__} is not a function, result or capture")


def _check_place(what: str) -> None:
    refuse_on_windows(what, "; captures made there can be read here")
    if os.environ.get(IN_WORKER):
        guard = 'if __name__ == "__main__":'
        raise UsageError(f"{what} is called while a measuring process loads the file: it belongs below `{guard}`")
