"""A watched process for other viewers: its threads' budgets and stacks.

A writer raises ``UsageError`` where the capture is damaged or the file cannot be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from overhead_lens.errors import UsageError
from overhead_lens.export.lanes.budget import BUDGET
from overhead_lens.export.lanes.model import Section
from overhead_lens.export.lanes.threads import thread_key, thread_lane, thread_name, thread_stacks
from overhead_lens.export.perfetto.picture import Picture, write_picture
from overhead_lens.export.perfetto.stacks import flamegraphs
from overhead_lens.export.speedscope import Profile, Write
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.studies.attach.analysis import make_process
from overhead_lens.studies.attach.stored import read_process
from overhead_lens.taxonomy.classifier import Classifier


def write_process_perfetto(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the capture of a process as a Perfetto trace: a budget a thread, and each thread's stacks as a flamegraph.

    The axis is the time that was watched. When what happened in it is not known: the sampler keeps counts.
    """
    meta, threads = read_process(path)
    process = make_process(meta, threads, classifier, str(path))
    first, *others = process.threads
    lanes = [thread_lane(first, kind=BUDGET), *map(thread_lane, others)]
    stacks = thread_stacks(threads, process.threads, classifier)
    names = {thread_key(thread): thread_name(thread) for thread in threads}
    drawn = flamegraphs(thread_key(first), process.command, stacks, names, process.duration_ns)
    write_picture(target, Picture([Section(lane) for lane in lanes], (0, process.duration_ns), flamegraphs=drawn))


def write_process_stacks(path: Path, target: Path, classifier: Classifier, write: Write) -> None:
    """Write the stacks of a process: a profile a thread, as long as the thread was there."""
    meta, threads = read_process(path)
    there_ns = {thread_key(each): each.there_ns for each in make_process(meta, threads, classifier, str(path)).threads}
    profiles = [Profile(_title(thread, threads), there_ns[thread_key(thread)], thread.stacks) for thread in threads]
    write(target, f"process {meta.pid}", profiles)


def write_process_chrome(*_: object) -> None:
    """Refuse: a sampler takes no events."""
    raise UsageError(
        "a watched process has stacks and no events: export it with --format collapsed, perfetto or speedscope"
    )


def _title(thread: SampledThread, threads: Sequence[SampledThread]) -> str:
    """The name and number of a thread, with its process where there are several."""
    several = len({each.process for each in threads}) > 1
    return f"{thread.name or 'thread'} ({f'{thread.process}/' if several else ''}{thread.thread})"
