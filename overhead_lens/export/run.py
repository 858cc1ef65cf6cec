"""A run of a user's program for viewers other than Perfetto: the stacks of its steps, and the steps that were traced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overhead_lens.budget.threads import MAIN
from overhead_lens.captures.files import KINETO
from overhead_lens.errors import UsageError
from overhead_lens.export.chrome import write_chrome
from overhead_lens.export.collapsed import write_collapsed
from overhead_lens.export.lanes.budget import BUDGET_GROUP, host_slices
from overhead_lens.export.lanes.model import Lane
from overhead_lens.export.lanes.threads import thread_name
from overhead_lens.export.perfetto.run import write_run_perfetto
from overhead_lens.export.speedscope import Profile, write_profiles
from overhead_lens.readers.kineto.read import read_events
from overhead_lens.stack import Stack
from overhead_lens.studies.run.analysis import other_threads, run_budget, step_stacks
from overhead_lens.studies.run.stored import StoredRun, read_run
from overhead_lens.taxonomy.classifier import Classifier

__all__ = ["write_run_chrome", "write_run_collapsed", "write_run_perfetto", "write_run_speedscope"]


def write_run_chrome(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the budget of a step, and the traced steps, as Chrome's JSON trace.

    Raises:
        UsageError: No step was traced, the capture is damaged, or the file cannot be written.
    """
    run = read_run(path)
    if not (path / KINETO).exists():
        raise UsageError(f"{path} holds no traced step: export it with --format collapsed, perfetto or speedscope")
    budget = run_budget(run, classifier)
    lane = Lane(f"Budget of a {budget.per}", host_slices(budget.host), group=BUDGET_GROUP)
    write_chrome(target, lane, read_events(path / KINETO))


def write_run_collapsed(path: Path, target: Path, _: Classifier) -> None:
    """Write the stacks of a run as folded stacks, below a root frame for each thread.

    Raises:
        UsageError: It has none, the capture is damaged, or the file cannot be written.
    """
    write_collapsed(target, list(_stacks(read_run(path))))


def write_run_speedscope(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the stacks of a run for speedscope: a profile a thread, each as long as a step.

    Raises:
        UsageError: It has none, the capture is damaged, or the file cannot be written.
    """
    run = read_run(path)
    wall_ns = run_budget(run, classifier).wall.ns
    profiles = [Profile(name, wall_ns, stacks) for name, stacks in _stacks(run)]
    write_profiles(target, " ".join(run.meta.program), profiles)


def _stacks(run: StoredRun) -> Iterator[tuple[str, list[Stack]]]:
    """Stacks of the steps, and of every other thread.

    Raises:
        UsageError: There are none.
    """
    own, others = step_stacks(run), other_threads(run)
    if not own and not others:
        raise UsageError(f"{run.path} holds no samples to export ({run.meta.reason or 'none were taken'})")
    if own:
        yield run.meta.thread_name or MAIN, own
    for thread in others:
        yield f"{thread_name(thread)} ({thread.process}/{thread.thread})", list(thread.stacks)
