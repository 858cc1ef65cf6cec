"""The sampler of a run: it looks at the program from its start, and rests while bare steps are timed.

Symbols are read at a library's first stack, so a sampler that begins with the program has read them when the steps begin. From
then on the program asks for stacks and for rest in turns (``program/watcher.py``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.guard import descendants, threads_of
from overhead_lens.machine.other_process import cpu_ns, runs, thread_cpu_ns
from overhead_lens.machine.placement import Placement
from overhead_lens.machine.thread_clocks import ThreadClocks
from overhead_lens.program.area import Area, Word
from overhead_lens.samplers.py_spy import PySpy, start_py_spy
from overhead_lens.samplers.sampler import NoStackError, SamplerRun, Watch

RATE_HZ = 100
_LEAST_RATE_HZ = 20
# A thread that runs less than this part of what it runs while the sampler rests is stopped too often.
_LEAST_RUNNING = 0.6
_ANSWER_S, _REST_S = 0.01, 0.05
# Sampling intervals for which the program stays held once the sampler has gone on: at least one stack is taken in them.
_HELD_STACKS = 2.5
# A program that shows no step is looked at as a whole from then on, at a rate that costs it little. It is halved after so many
# stacks of each thread, which py-spy keeps in memory until it ends.
_WHOLE_AFTER_S, _MOST_STACKS = 10.0, 12_000
_BUSY_SHARE = 0.05
# After so long a rest, catching up takes longer than to begin again.
_LONGEST_REST_S = 60.0
# In a turn that is longer, and longer than all steps before it, the steps have ended.
_LONGEST_TURN_S = 600.0


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sampler's stacks; ``alive`` are the threads that were there when it ended."""

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
    """Samples a program on its watcher's request; leaving the context ends the sampler.

    Attributes:
        sampled: What the samplers gave that have ended.
        rested: What the threads run while it rests.
        reason: Why there are no stacks, or none any more.
        unplaced: Why the program's threads could not be placed; empty if they were, or did not need to be.
    """

    def __init__(self, pid: int, area: Area, folder: Path) -> None:
        self._pid, self._area, self._folder = pid, area, folder
        self._began_s = 0.0
        self._running: PySpy | None = None
        self._placement, self.rested = Placement(pid), ThreadClocks(pid)
        # When steps were found, and when the last turn began.
        self._found_s = self._placed_s = 0.0
        self._rate_hz, self._children = RATE_HZ, False
        self._alive: frozenset[int] = frozenset()
        self._clocks: list[tuple[int, int]] = []
        self._replaced = False
        self._children_clocks: tuple[int, dict[int, int]] = (0, {})
        self._busy: set[int] = set()
        self._state = _State.WAITING
        # When it was paused, and until when it may catch up: one that needs longer than it rested does not keep pace.
        self._paused_s = self._catch_up_until_s = 0.0
        self.sampled: list[Sampled] = []
        self.reason = self.unplaced = ""

    def __enter__(self) -> RunSampler:
        return self

    def __exit__(self, *_: object) -> None:
        with self._placement:
            self._end()

    @property
    def wait_s(self) -> float:
        """Seconds until the next call of ``attend``."""
        is_calm = self._state in (_State.RESTING, _State.OVER) or (
            self._state is _State.PLACED and not self._owes_answer() and not self._owes_release()
        )
        return _REST_S if is_calm else _ANSWER_S

    def attend(self) -> None:
        """Do what the program asks for."""
        area = self._area
        if not self._found_s and area.read(Word.FOUND):
            self._found_s = time.monotonic()
            self.rested.begin()
        is_enough = any(map(area.read, (Word.ENOUGH, Word.REFUSED, Word.FINISHED_NS)))
        if self._running is None:
            if area.read(Word.STARTED_NS) and not is_enough:
                # Earlier steps may have ended in a turn, with no period begun since.
                self.rested.begin()
                self._refusing(self._start)
            return
        self._alive = frozenset(threads_of(self._pid)) or self._alive
        if is_enough:
            # Until other steps are found.
            self._collect()
            self._state, self._rate_hz = _State.OVER, RATE_HZ
        elif self._running.over:
            self._refusing(self._replace)
        elif self._owes_answer():
            self._refusing(self._answer)
        elif self._state is _State.PLACED:
            self._placement.follow()
            self._release()
            if self._is_turn_over():
                area.write(Word.ENOUGH, 1)
        elif self._is_whole():
            self._refusing(lambda: self._restart(min(_LEAST_RATE_HZ, self._rate_hz // 2)))

    def _owes_answer(self) -> bool:
        return self._area.read(Word.REQUESTED) > self._area.read(Word.ANSWERED)

    def _answer(self) -> None:
        """Pause the sampler at once; if it is to sample, answer when it has gone on and caught up."""
        area = self._area
        request = area.read(Word.REQUESTED)
        if not request % 2:
            self._rest()
        elif area.read(Word.RESUMED) < request:
            self._sample()
            area.write(Word.RESUMED, request)
            return
        elif self._catches_up():
            self._placement.follow()
            return
        else:
            self._clocks = [self._read_clocks()]
        area.write(Word.ANSWERED, request)

    def _catches_up(self) -> bool:
        """Whether it takes what was due while it was paused; False where that is not known."""
        late = self._running is not None and self._running.caught_up is False
        return late and time.monotonic() < self._catch_up_until_s

    def _is_turn_over(self) -> bool:
        """Whether the program's steps have ended in this turn: their thread is gone, or no request ends it."""
        now_s = time.monotonic()
        is_gone = bool(self._alive) and self._area.read(Word.THREAD) not in self._alive
        return is_gone or now_s - self._placed_s > max(_LONGEST_TURN_S, self._placed_s - self._found_s)

    def _is_whole(self) -> bool:
        """Whether it has taken stacks of whatever the program does for so long that it is to take fewer."""
        waited_s = time.monotonic() - self._began_s
        is_early = self._rate_hz > _LEAST_RATE_HZ and not self._area.read(Word.FOUND)
        limit_s = _WHOLE_AFTER_S if is_early else _MOST_STACKS / self._rate_hz
        return self._state is _State.FREE and self._rate_hz > 1 and waited_s > limit_s

    def _start(self) -> None:
        output = self._folder / f".stacks-{len(self.sampled)}"
        watch = Watch(self._pid, self._rate_hz, None, output, self._children, bound=True)
        self._running = start_py_spy(watch)
        self._began_s = time.monotonic()
        self._running.wait_until_begun()
        self._state = _State.FREE

    def _sample(self) -> None:
        """Let the sampler take stacks of the steps, on their core."""
        if self._state is _State.PLACED:
            # Of other steps from now on.
            self._rest()
            self._clocks = []
        is_first = self._state is _State.FREE
        takes_turns = self.rested.end()
        if is_first:
            if self._rate_hz < RATE_HZ:
                self._restart(RATE_HZ)
        elif self._hinders():
            self._restart(max(_LEAST_RATE_HZ, self._rate_hz // 2))
        elif not self._children and self._has_busy_children():
            self._children = True
            self._restart(self._rate_hz)
        elif time.monotonic() - self._paused_s > _LONGEST_REST_S:
            self._restart(self._rate_hz)
        running = self._running
        assert running is not None
        if is_first:
            # What they ran while they warmed up says nothing of later steps.
            self.rested = ThreadClocks(self._pid)
        if not takes_turns:
            self._placement.place(self._area.read(Word.THREAD), running.pid)
        core = self._placement.core
        self._area.write(Word.PLACED, 0 if core is None else core + 1)
        self.unplaced = self._placement.reason
        running.resume()
        time.sleep(_HELD_STACKS / self._rate_hz)
        now_s = self._placed_s = time.monotonic()
        self._catch_up_until_s = now_s + (now_s - self._paused_s if self._state is _State.RESTING else 0.0)
        self._state = _State.PLACED

    def _owes_release(self) -> bool:
        return self._area.read(Word.RELEASED) < self._area.read(Word.ANSWERED)

    def _release(self) -> None:
        """Let a held program go on once the sampler has caught up and taken a stack of it."""
        held, running = self._area.read(Word.HELD), self._running
        is_held = self._owes_release() and held == self._area.read(Word.ANSWERED)
        if running is not None and is_held and running.caught_up:
            time.sleep(_HELD_STACKS / self._rate_hz)
            self._area.write(Word.RELEASED, held)

    def _rest(self) -> None:
        running = self._running
        assert running is not None
        self._clocks.append(self._read_clocks())
        self._put_back()
        running.pause()
        self._paused_s = time.monotonic()
        self.rested.begin()
        self._state = _State.RESTING

    def _put_back(self) -> None:
        self._placement.put_back()
        self._area.write(Word.PLACED, 0)

    def _has_busy_children(self) -> bool:
        """Whether a child process has computed in the last two turns: a worker, and none that has just started."""
        now_ns = time.monotonic_ns()
        before, (then_ns, spent_ns) = self._busy, self._children_clocks
        self._children_clocks = now_ns, {child: cpu_ns(child) or 0 for child in descendants(self._pid)}
        self._busy = {
            child
            for child, ns in self._children_clocks[1].items()
            if child in spent_ns and ns - spent_ns[child] > _BUSY_SHARE * (now_ns - then_ns)
        }
        return bool(before & self._busy)

    def _read_clocks(self) -> tuple[int, int]:
        return time.monotonic_ns(), thread_cpu_ns(self._pid).get(self._area.read(Word.THREAD), 0)

    def _hinders(self) -> bool:
        """Whether the thread ran much less in the last turn than in the rest after it."""
        if self._rate_hz <= _LEAST_RATE_HZ or len(self._clocks) != 2:
            return False
        (began, cpu_began), (ended, cpu_ended), (now, cpu_now) = (*self._clocks, self._read_clocks())
        sampled, resting = (cpu_ended - cpu_began) / (ended - began), (cpu_now - cpu_ended) / (now - ended)
        return sampled < _LEAST_RUNNING * resting

    def _replace(self) -> None:
        """Replace a sampler that has died, once."""
        self._collect()
        if self._replaced or not runs(self._pid):
            self._end()
            return
        self._replaced = True
        self._start()
        self.reason = ""

    def _restart(self, rate_hz: int) -> None:
        self._collect()
        self._rate_hz = rate_hz
        self._start()

    def _refusing(self, act: Callable[[], None]) -> None:
        """Do something with the sampler; if it fails, sampling ends and the program is notified."""
        try:
            act()
        except MeasurementError as error:
            self._failed(error)
            self._end()

    def _end(self) -> None:
        """End sampling, and notify the program."""
        self._collect()
        self._state = _State.OVER
        self._area.write(Word.REFUSED, 1)

    def _collect(self) -> None:
        """End the sampler and store its stacks."""
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
        """Record why there is no sampler, unless the program has ended."""
        if not self._area.read(Word.FINISHED_NS) and runs(self._pid):
            self.reason = str(error)
