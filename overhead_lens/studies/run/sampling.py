"""The sampler of a run: it looks at the program from its start, and rests while bare steps are timed.

Symbols are read at a library's first stack, so a sampler that begins with the program has read them when the steps begin. From
then on the program asks for stacks and for rest in turns (``program/watcher.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.guard import descendants, threads_of
from overhead_lens.machine.other_process import cpu_ns, runs
from overhead_lens.machine.placement import Placement
from overhead_lens.program.area import Area, Word
from overhead_lens.samplers.py_spy import PySpy
from overhead_lens.samplers.sampler import NoStackError, Running, SamplerRun, Watch
from overhead_lens.units import NS_PER_S

RATE_HZ = 100
_LEAST_RATE_HZ = 20
# The sampler's own CPU time, as a share of a turn, from which on it hinders more than it tells.
_MOST_LOAD = 0.5
_ANSWER_S, _REST_S = 0.01, 0.05
# A program that shows no step is looked at as a whole from then on, at a rate that costs it little.
_WHOLE_AFTER_S = 10.0
_LOOK_S, _BUSY_SHARE = 0.05, 0.05


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sampler's stacks.

    Attributes:
        run: What it gave.
        rate_hz: Stacks a second.
        alive: Threads that were there when it ended.
    """

    run: SamplerRun
    rate_hz: int
    alive: frozenset[int]


class _State(Enum):
    WAITING = "the program has not begun"
    FREE = "it takes stacks of whatever the program does"
    PLACED = "it takes stacks of the steps, on their core"
    RESTING = "it is paused"
    OVER = "it has ended"


class RunSampler:
    """Samples a program as its watcher asks; leaving the context leaves nothing of it.

    Attributes:
        sampled: What the samplers gave that have ended.
        reason: Why there are no stacks, or none any more.
        unplaced: Why the program's threads could not be placed; empty where they were, or did not need to be.
    """

    def __init__(self, pid: int, area: Area, folder: Path) -> None:
        self._pid, self._area, self._folder = pid, area, folder
        self._began_s = 0.0
        self._running: Running | None = None
        self._until_closed = ExitStack()
        self._placement: Placement | None = None
        self._rate_hz, self._children = RATE_HZ, False
        self._alive: frozenset[int] = frozenset()
        self._turn_began_ns = self._turn_ns = (0, 0)
        self._state = _State.WAITING
        self.sampled: list[Sampled] = []
        self.reason = self.unplaced = ""

    def __enter__(self) -> RunSampler:
        return self

    def __exit__(self, *_: object) -> None:
        with self._until_closed:
            self._end()

    @property
    def wait_s(self) -> float:
        """How long to wait before ``attend`` is called again."""
        return _REST_S if self._state in (_State.PLACED, _State.RESTING, _State.OVER) else _ANSWER_S

    def attend(self) -> None:
        """Do what the program asks for."""
        area = self._area
        if self._state is _State.WAITING and area.read(Word.STARTED_NS):
            self._refusing(self._start)
        elif self._running is not None:
            self._alive = frozenset(threads_of(self._pid)) or self._alive
            if self._running.over or area.read(Word.ENOUGH) or area.read(Word.FINISHED_NS):
                self._end()
            elif area.read(Word.WANTED) > area.read(Word.ANSWERED):
                self._refusing(self._answer)
            elif self._state is _State.PLACED and self._placement is not None:
                self._placement.follow()
            elif self._is_whole():
                self._refusing(lambda: self._restart(_LEAST_RATE_HZ))

    def _answer(self) -> None:
        wanted = self._area.read(Word.WANTED)
        if wanted % 2:
            self._sample()
        else:
            self._rest()
        self._area.write(Word.ANSWERED, wanted)

    def _is_whole(self) -> bool:
        """Whether the program has shown no step for so long that it is looked at as a whole."""
        waited_s = time.monotonic() - self._began_s
        return self._rate_hz > _LEAST_RATE_HZ and waited_s > _WHOLE_AFTER_S and not self._area.read(Word.FOUND)

    def _start(self) -> None:
        output = self._folder / f".stacks-{len(self.sampled)}"
        watch = Watch(self._pid, self._rate_hz, None, output, self._children, bound=True)
        self._running = PySpy().start(watch)
        self._began_s = time.monotonic()
        self._running.wait_until_begun()
        self._state = _State.FREE

    def _sample(self) -> None:
        """Have the sampler take stacks of the steps, on their own core."""
        if self._state is _State.FREE:
            # Before the first turn: what it is like to sample this program is known now.
            self._children = _has_busy_children(self._pid)
            if self._children or self._rate_hz < RATE_HZ:
                self._restart(RATE_HZ)
        elif self._load() > _MOST_LOAD:
            self._restart(max(_LEAST_RATE_HZ, self._rate_hz // 2))
        running = self._running
        assert running is not None
        if self._placement is None:
            thread = self._area.read(Word.THREAD)
            self._placement = self._until_closed.enter_context(Placement(self._pid, thread))
        placed = self._placement.place(running.pid)
        self._area.write(Word.PLACED, int(placed))
        self.unplaced = self._placement.reason
        running.resume()
        self._state = _State.PLACED
        self._turn_began_ns = time.monotonic_ns(), cpu_ns(running.pid) or 0

    def _rest(self) -> None:
        running = self._running
        assert running is not None
        self._turn_ns = (
            time.monotonic_ns() - self._turn_began_ns[0],
            (cpu_ns(running.pid) or 0) - self._turn_began_ns[1],
        )
        self._put_back()
        running.pause()
        self._state = _State.RESTING

    def _put_back(self) -> None:
        """Let the program's threads run where they could before."""
        if self._placement is not None:
            self._placement.put_back()
        self._area.write(Word.PLACED, 0)

    def _load(self) -> float:
        """The sampler's CPU time in the last turn, as a share of the turn."""
        wall_ns, own_ns = self._turn_ns
        return own_ns / max(1, wall_ns)

    def _restart(self, rate_hz: int) -> None:
        """Go on with another sampler."""
        self._collect()
        self._rate_hz = rate_hz
        self._start()

    def _refusing(self, act: Callable[[], None]) -> None:
        """Do something with the sampler; where it fails there is none from now on, and the program is told."""
        try:
            act()
        except MeasurementError as error:
            self._failed(error)
            self._end()

    def _end(self) -> None:
        """Take no stack any more, and tell the program."""
        self._collect()
        self._state = _State.OVER
        self._area.write(Word.REFUSED, 1)

    def _collect(self) -> None:
        """End the sampler and keep what it has."""
        running, self._running = self._running, None
        self._put_back()
        if running is None:
            return
        with running:
            running.stop()
            try:
                self.sampled.append(Sampled(running.finish(), self._rate_hz, self._alive))
            except NoStackError:
                return
            except MeasurementError as error:
                self._failed(error)

    def _failed(self, error: MeasurementError) -> None:
        """Say why there is no sampler, unless the program's end is the reason."""
        if not self._area.read(Word.FINISHED_NS) and runs(self._pid):
            self.reason = str(error)


def _has_busy_children(pid: int) -> bool:
    """Whether a child process of a process computes now."""
    before_ns = {child: cpu_ns(child) for child in descendants(pid)}
    time.sleep(_LOOK_S if before_ns else 0)
    spent_ns = [(cpu_ns(child) or 0) - (ns or 0) for child, ns in before_ns.items()]
    return any(ns > _BUSY_SHARE * _LOOK_S * NS_PER_S for ns in spent_ns)
