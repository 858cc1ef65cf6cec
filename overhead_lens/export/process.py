"""A watched process for other viewers: its threads' budgets and stacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from overhead_lens.captures.files import PERFETTO
from overhead_lens.export.collapsed import write_collapsed
from overhead_lens.export.lanes.budget import BUDGET_GROUP, host_slices
from overhead_lens.export.lanes.identities import Identities
from overhead_lens.export.lanes.model import Lane, ThreadKey
from overhead_lens.export.names import readable
from overhead_lens.export.output import replacing
from overhead_lens.export.perfetto.packets import PacketSequence, PacketSink
from overhead_lens.export.perfetto.samples import write_samples
from overhead_lens.export.perfetto.tracks import Tracks
from overhead_lens.export.speedscope import Profile, write_profiles
from overhead_lens.readers.py_spy.threads import SampledThread
from overhead_lens.studies.attach.analysis import ProcessBudget, make_process
from overhead_lens.studies.attach.stored import read_process
from overhead_lens.taxonomy.classifier import Classifier


def draw_process(path: Path, classifier: Classifier) -> Path:
    """Write ``trace.pftrace`` into the capture of a process."""
    write_process_perfetto(path, path / PERFETTO, classifier)
    return path / PERFETTO


def write_process_perfetto(path: Path, target: Path, classifier: Classifier) -> None:
    """Write the capture of a process as a Perfetto trace: a budget a thread, and each thread's stacks as a flamegraph.

    Raises:
        UsageError: The capture is damaged, or the file cannot be written.
    """
    meta, threads = read_process(path)
    process = make_process(meta, threads, classifier, str(path))
    numbers = Identities(_key(thread) for thread in threads)
    with replacing(target) as file:
        sink = PacketSink(file)
        tracks = Tracks(PacketSequence(sink, 1))
        _write_budgets(tracks, process)
        for name in dict.fromkeys(str(thread.process) for thread in threads):
            tracks.process(numbers.process(name), readable(f"process {name}"))
        for number, thread in enumerate(threads, 2):
            pid, tid = numbers.process(str(thread.process)), numbers.thread(_key(thread))
            tracks.thread(pid, tid, readable(thread.name))
            period_ns = max(1, process.duration_ns // thread.samples)
            write_samples(PacketSequence(sink, number), thread.stacks, period_ns, pid, tid)
        sink.flush()


def write_process_speedscope(path: Path, target: Path) -> None:
    """Write the capture of a process for speedscope: a profile a thread.

    Raises:
        UsageError: The capture is damaged, or the file cannot be written.
    """
    meta, threads = read_process(path)
    profiles = [Profile(_title(thread, threads), meta.duration_ns, thread.stacks) for thread in threads]
    write_profiles(target, f"process {meta.pid}", profiles)


def write_process_collapsed(path: Path, target: Path) -> None:
    """Write the capture of a process as folded stacks, below a root frame for each thread.

    Raises:
        UsageError: The capture is damaged, or the file cannot be written.
    """
    _, threads = read_process(path)
    write_collapsed(target, [(_title(thread, threads), thread.stacks) for thread in threads])


def _write_budgets(tracks: Tracks, process: ProcessBudget) -> None:
    group = tracks.group(BUDGET_GROUP)
    for thread in process.threads:
        description = f"{thread.wall_ns} ns, which the slices sum to; their order is not the order of events."
        name = readable(f"{thread.name} ({thread.thread})")
        tracks.lane(Lane(name, host_slices(thread.host), group=BUDGET_GROUP, description=description), group)


def _key(thread: SampledThread) -> ThreadKey:
    return str(thread.process), str(thread.thread)


def _title(thread: SampledThread, threads: Sequence[SampledThread]) -> str:
    """The name and number of a thread, with its process where there are several."""
    several = len({each.process for each in threads}) > 1
    return f"{thread.name or 'thread'} ({f'{thread.process}/' if several else ''}{thread.thread})"
