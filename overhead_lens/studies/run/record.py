"""Runs a user's program once and measures it on the way.

The program's process finds its steps and times them (``overhead_lens/program``); this process starts it, waits for it, and has
the sampler look at it whenever it asks for that. Nothing here writes to the program's streams.
"""

from __future__ import annotations

import ast
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from overhead_lens.captures.directory import cannot_write, recording_directory, write_meta
from overhead_lens.captures.files import KINETO, STACKS
from overhead_lens.captures.model import recorded
from overhead_lens.errors import MeasurementError, OverheadLensError, UsageError, internal_error
from overhead_lens.machine.cores import cpu_quota
from overhead_lens.machine.environment import describe_machine
from overhead_lens.machine.request import command_line
from overhead_lens.program.area import NOTES, Area, Phase, StepRecord, Word
from overhead_lens.program.trace import TRACE
from overhead_lens.samplers.blocks import Block, blocks_of, write_blocks
from overhead_lens.studies.run.sampling import RATE_HZ, RunSampler, Sampled
from overhead_lens.studies.run.stored import RUN, STEPS, Compilation, Place, RunMeta, StoredRegion
from overhead_lens.units import format_ns

# Of the time of the steps.
_WENT_ON_SHARE = 0.1
# Notes that are stored as they are.
_NOTED = ("before", "first_ns", "settled_ns", "sampled_ns", "earlier", "traced_regions")
_START = Path(__file__).parent.parent.parent / "program" / "start.py"


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run: ``command`` is a script or ``-m`` and a module, with arguments; ``step`` is the user's option."""

    command: Sequence[str]
    step: str = ""

    @property
    def label(self) -> str:
        """A name for its directory."""
        return Path(self.command[1] if self.command[0] == "-m" else self.command[0]).stem


class NotStoredError(MeasurementError):
    """The program has ended, with an exit ``code`` that is negative for a signal, and what was measured cannot be stored."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def record_run(program: Program, output: Path | None, parent: Path) -> tuple[Path, int]:
    """Run a program and store what was measured; returns the directory and the exit code, negative for a signal.

    Raises:
        UsageError: There is no such script, or the output place is taken.
        MeasurementError: Nothing can be written, or the program cannot be started.
        NotStoredError: Nothing can be written at its end.
    """
    if program.command[0] != "-m" and not Path(program.command[0]).exists():
        raise UsageError(f"no script {program.command[0]}")
    started = datetime.now(timezone.utc)
    with recording_directory(output, parent, f"run-{program.label}") as folder:
        area = Area.create(folder)
        settings = json.dumps({"tracer_pid": os.getpid(), "step": program.step})
        child = subprocess.Popen([sys.executable, str(_START), str(folder.resolve()), settings, *program.command])
        with _left_to(child):
            try:
                with RunSampler(child.pid, area, folder) as sampler:
                    while child.poll() is None:
                        time.sleep(sampler.wait_s)
                        sampler.attend()
                    # Its sampler may take long to end.
                    ended_ns = time.perf_counter_ns()
                _write(program, folder, area, child, sampler, started, ended_ns)
            except Exception as error:
                # The program goes on, whatever fails here.
                raise NotStoredError(_error_line(folder, error), child.wait()) from error
        return folder, child.returncode


def _error_line(folder: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return cannot_write(folder, error)
    return str(error) if isinstance(error, OverheadLensError) else internal_error(error)


@contextmanager
def _left_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave Ctrl-C to the program, which is of the terminal's process group, and pass on what is sent to us alone."""
    # Slurm sends the last two, before a job's time is up, to the processes that it has started itself.
    passed_on = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *passed_on)}

    def pass_on(number: int, _frame: object) -> None:
        with suppress(ProcessLookupError):
            child.send_signal(number)

    signal.signal(signal.SIGINT, lambda *_: None)
    for number in passed_on:
        signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(
    program: Program,
    folder: Path,
    area: Area,
    child: subprocess.Popen[bytes],
    sampler: RunSampler,
    started: datetime,
    ended_ns: int,
) -> None:
    """Write all files, ``meta.json`` last; ``ended_ns`` is when the process had ended."""
    rows = area.rows()
    # What it takes may be all the room there is.
    area.close(folder)
    if rows:
        # The program has ended: it does not wait for this import.
        import pandas as pd

        pd.DataFrame(rows, columns=StepRecord._fields).to_parquet(folder / STEPS, index=False)
    if sampler.sampled:
        write_blocks(folder / STACKS, _blocks(sampler.sampled, area.read(Word.THREAD)))
    if (folder / TRACE).exists():
        with (folder / TRACE).open("rb") as plain, gzip.open(folder / KINETO, "wb", compresslevel=6) as packed:
            shutil.copyfileobj(plain, packed)
    notes = _notes(folder)
    place = _place(notes.get("home"))
    begun_ns = area.read(Word.STARTED_NS)
    ended_ns = area.read(Word.FINISHED_NS) or ended_ns
    meta = RunMeta(
        **recorded(describe_machine(), command_line(), started),
        program=list(program.command),
        exit_code=child.returncode,
        pid=child.pid,
        wall_ns=ended_ns - begun_ns if begun_ns else 0,
        found_by=notes.get("found_by", "none") if rows else "none",
        where="" if place is None else f"{Path(place.file).name}:{notes['home'][2]}",
        home=place,
        **{name: notes[name] for name in _NOTED if name in notes},
        thread=area.read(Word.THREAD),
        thread_name=notes.get("thread", ""),
        begun_ns=begun_ns,
        lost=area.read(Word.LOST),
        last_ns=area.read(Word.LAST_NS),
        samples=sum(sampled.run.sample_count for sampled in sampler.sampled),
        errors=sum(sampled.run.error_count for sampled in sampler.sampled),
        reason=sampler.reason,
        rate_hz=sampler.sampled[-1].rate_hz if sampler.sampled else RATE_HZ,
        unplaced=sampler.unplaced,
        running=sorted(sampler.rested.running.items()),
        in_system=sorted(sampler.rested.in_system.items()),
        regions=_regions(notes, has_steps=bool(rows)),
        compilations=[Compilation(*fields) for fields in notes["compilations"]],
        rank=int(os.environ["RANK"]) if os.environ.get("RANK", "").isdecimal() else None,
        warnings=[
            *_warnings(program, area, notes, child.returncode),
            *_other_steps(rows, area.read(Word.LAST_NS), notes),
        ],
    )
    for name in (NOTES, TRACE):
        (folder / name).unlink(missing_ok=True)
    write_meta(folder, RUN, meta)


def _blocks(sampled: Sequence[Sampled], thread: int) -> Iterator[tuple[Block, int]]:
    """The blocks of all samplers in order, with the weight of a stack."""
    turn = 0
    for each in sampled:
        for block in blocks_of(each.run.sequences, thread, each.alive, turn):
            turn = block.turn
            yield block, max(1, round(RATE_HZ / each.rate_hz))


def _warnings(program: Program, area: Area, notes: dict[str, Any], exit_code: int) -> Iterator[str]:
    if program.step and not area.read(Word.FOUND):
        yield f"--step {program.step} was never reached"
    if "defect" in notes:
        yield f"watching ended early because of an internal error: {notes['defect']}"
    elif "interrupted" in notes:
        yield f"watching ended early: a signal handler raised an error between two steps, {notes['interrupted']}"
    elif not area.read(Word.FINISHED_NS) and exit_code >= 0:
        yield "the program ended without shutting Python down (os._exit, os.exec): what came after is not seen"
    own_ns, children_ns = notes.get("cpu_ns", 0), notes.get("children_cpu_ns", 0)
    if children_ns > own_ns:
        yield (
            f"child processes computed for {format_ns(children_ns)}, the program itself for {format_ns(own_ns)}: steps are"
            " looked for in the program only"
        )
    quota, cores = cpu_quota(), os.cpu_count() or 1
    if quota is not None and quota < cores:
        yield f"a quota of {quota:g} CPUs on {cores} cores: when it is used up, all threads stop, whatever they do"
    if area.read(Word.LOST):
        yield "only the first million steps were kept"
    if notes.get("untraced"):
        yield f"no steps were traced: {notes['untraced']}"
    if notes.get("slowed"):
        yield "devices were recorded during earlier steps, which slows the launches of these"


def _other_steps(rows: Sequence[StepRecord], last_ns: int, notes: dict[str, Any]) -> Iterator[str]:
    """Whether another optimizer, module or thread went on after the steps; ``last_ns``: the end of the last without a row."""
    if not rows:
        return
    ended_ns = max(rows[-1].end_ns, last_ns)
    beyond_ns = notes.get("others_ns", 0) - ended_ns
    if beyond_ns > _WENT_ON_SHARE * (ended_ns - rows[0].begin_ns):
        advice = "" if notes["others"] == "thread" else "; --step names a line that all pass"
        yield (
            f"another {notes['others']} went on for {format_ns(beyond_ns)} after the last step: what it did is not in the"
            f" budget{advice}"
        )


def _notes(folder: Path) -> dict[str, Any]:
    """Notes from inside the program; a later note replaces an earlier one of the same name."""
    notes: dict[str, Any] = {"compilations": []}
    with suppress(OSError):
        for line in (folder / NOTES).read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                fields = json.loads(line)
                notes["compilations"] += [fields.pop("compiled")] if "compiled" in fields else []
                notes.update(fields)
    return notes


def _regions(notes: dict[str, Any], *, has_steps: bool) -> list[StoredRegion]:
    budget_phase = Phase.BARE if has_steps else Phase.WARM_UP
    places = {
        name: [place for fields in its if (place := _region_place(*fields)) is not None]
        for name, its in notes.get("region_places", {}).items()
    }
    return [
        StoredRegion(name, places[name], count, ns, squares, blocks)
        for name, phase, count, ns, squares, blocks in notes.get("regions", ())
        if phase == budget_phase
    ]


def _region_place(file: str, function: str, line: int, *callers: tuple[str, str, int]) -> Place:
    """The lines of a region: the block of its ``with``, or the function that begins at ``-line``.

    Of a context manager that leaves the region open, it is the block of the first caller that does not.
    """
    if line < 0:
        return Place(file, function, 0, 0)
    block = _innermost(file, (ast.With, ast.AsyncWith), line)
    stays_open = block is None or any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(block))
    if callers and stays_open:
        return _region_place(*callers[0], *callers[1:])
    return Place(file, function, line, line if block is None else block.end_lineno)


def _place(home: list[Any] | None) -> Place | None:
    """The loop around the step's line; the whole function where there is none."""
    if home is None:
        return None
    file, function, first, last = home
    if last > first:
        return Place(file, function, first, last)
    loop = _innermost(file, (ast.For, ast.While), first)
    return Place(file, function, 0, 0) if loop is None else Place(file, function, loop.lineno, loop.end_lineno)


def _innermost(file: str, kinds: tuple[Any, ...], line: int) -> Any:
    """The shortest statement of these kinds that holds a line; None without one, or if the file cannot be read."""
    try:
        nodes = ast.walk(ast.parse(Path(file).read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return None
    around = [node for node in nodes if isinstance(node, kinds) and node.lineno <= line <= node.end_lineno]
    return min(around, key=lambda node: node.end_lineno - node.lineno, default=None)
