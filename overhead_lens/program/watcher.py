"""Finds the steps of the running program and lets the instruments take turns over them.

A mark is the end of a step. Every source of marks (``ol.step``, an optimizer, a loop, ...) is a candidate until one has shown
itself regular. Until its steps have warmed up, another source takes over if it falls silent; then the others are let go. From
then on::

    warm-up | bare | attaching | sampled | bare | traced | bare | attaching | sampled | bare ... to the end
            ^ no compilation, no longer getting faster

All of this runs between the end of a step and the beginning of the next, so that no step contains it. A defect here must not
harm the program: it is noted, and the rest of the program runs unwatched.
"""

from __future__ import annotations

import builtins
import json
import os
import resource
import sys
import threading
import time
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import chain, compress, count, repeat
from pathlib import Path
from statistics import median
from types import CodeType, FrameType
from typing import Any

from overhead_lens.errors import in_one_line
from overhead_lens.program.area import NOTES, Area, Phase, Word
from overhead_lens.program.entries import Entries
from overhead_lens.program.hold import hold_until_resumed, hold_until_sampled
from overhead_lens.program.loops import EACH, LEFT, STEP, TICK, Loop
from overhead_lens.program.trace import StepTrace

KINDS = ("explicit", "profiler", "optimizer", "module", "loop")
"""Sources of marks, the most reliable first."""

_REGULAR_MARKS = 3
_LOOP_MARKS = 10
# Iterations of a loop that are shorter than what measuring them takes.
_SHORT_NS, _SHORT_MARKS = 2_000, 1_000
# A loop may begin with this number of them, which skip what an earlier run has done, until one takes long.
_SKIPPED_MARKS, _LONG_NS = 20_000, 100_000
_SCOUTING_NS = 1_000_000_000
_LONG_SCOUTING_NS = 3_000_000_000
# A source is silent after this time without a mark, and after this many of its intervals.
_SILENT_NS, _SILENT_STEPS = 3_000_000_000, 10
# Turns of the instruments double in length, so that a short program has some of each.
_FIRST_SAMPLED_NS, _LONGEST_SAMPLED_NS, _SAMPLED_NS = 400_000_000, 4_000_000_000, 24_000_000_000
_BARE_SHARE, _BARE_STEPS = 0.25, 3
# In turns. What recorded a device stays in the process and slows each launch: nothing is measured afterwards.
_TRACED_AFTER, _DEVICES_TRACED_AFTER = 2, 3
# Regions are written again and again, for a program that is killed, at times whose distance doubles.
_REGIONS_NS, _LONGEST_REGIONS_NS = 1_000_000_000, 600_000_000_000
# Recorded entries of a region: enough for a mean.
_MOST_ENTRIES = 50
_POLL_NS = 20_000_000
_ATTACHING_NS = 60_000_000_000
_SETTLING_NS = 10_000_000_000
_WINDOW_STEPS, _WINDOW_NS = 5, 100_000_000
_SETTLED_SHARE = 0.05
# Odd requests and even ones (``Word``).
_SAMPLE, _REST = 1, 0
_FOREVER = 2**62
_NEVER = object()
as_they_are: Callable[[Any], Any] = partial(dict[Any, Any]().get, None)
"""Returns a loop's items, without a Python frame; to iterate over them here, too, would start some iterators twice."""
# Reading the thread's counters takes 2 us, and the step after it some more.
_COUNTED_STEP_NS = 1_000_000
_NOT_COUNTED = (0, 0, 0, 0)
# macOS counts for the whole process only.
_USAGE_OF = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
_SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_clock = time.perf_counter_ns
_OURS = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Candidate:
    """A source of marks while it is looked at.

    ``short`` of them came soon after it had been looked at, at ``looked_ns``; negative while it may still skip. The first
    ``skipped`` ones were short.
    """

    kind: str
    key: object
    thread: int
    marks: int = 0
    first_ns: int = 0
    last_ns: int = 0
    looked_ns: int = 0
    short: int = field(default_factory=lambda: -_SKIPPED_MARKS)
    skipped: int = 0

    @property
    def interval_ns(self) -> float:
        """Mean time between marks that were not skipped."""
        return (self.last_ns - self.first_ns) / max(1, self.marks - self.skipped - 1)


class StepWatcher:
    """Watches the program from inside.

    Args:
        area: Shared with the recorder.
        kinds: Sources of marks that count.
    """

    def __init__(self, area: Area, folder: Path, kinds: Sequence[str] = KINDS) -> None:
        self._area, self._folder = area, folder
        self._kinds = tuple(kinds)
        self._main = threading.get_native_id()
        self._alive = True
        self._candidates: dict[tuple[str, object, int], Candidate] = {}
        self._scouting = threading.Lock()
        self._scouting_since = 0
        self._chosen: Candidate | None = None
        self._before = 0
        # Turns of the sampler so far, by thread.
        self._turns_of: defaultdict[int, int] = defaultdict(int)
        # The last mark of the chosen kind by another source, or in another thread.
        self._others_ns, self._others = 0, ""
        self._passed: dict[tuple[str, object, int], int] = {}
        self._loops: list[Loop] = []
        # Numbers of the loops that may have the steps.
        self._possible: list[int] = []
        self._ticks: dict[int, Callable[[], Any]] = {}
        self._begin_ns = 0
        self._deadline_ns = _FOREVER
        self._plan: Iterator[int] = iter(())
        self._trace = StepTrace(folder)
        self._phase = Phase.WARM_UP
        self._is_settled = self._is_measured = False
        self._recent: list[int] = []
        self._reads_usage = False
        self.compile_ns = self.data_ns = 0
        # A number, even while a collection runs, and after it, when it is odd, ns of all so far.
        self.collected = deque([(-1, 0)], maxlen=2)
        self.let_go: dict[str, Callable[[], None]] = {}
        # Time that each thread spent between steps: it is of no region.
        self._between_ns: defaultdict[int, int] = defaultdict(int)
        self._inside: defaultdict[int, list[tuple[str, int, int]]] = defaultdict(list)
        self._regions: defaultdict[tuple[str, int], Entries] = defaultdict(Entries)
        self._traced_regions: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._region_places: dict[str, set[tuple[Any, ...]]] = {}
        area.write(Word.THREAD, self._main)
        self._affinity: Any = getattr(os, "sched_getaffinity", None)
        self._cores: set[int] = set()
        os.register_at_fork(after_in_child=self._in_child)

    # ------------------------------------------------------------------ sources of marks

    def watch_loops(self, loops: Sequence[Loop]) -> None:
        """Bind the marks of ``loops`` to the watcher."""
        first = len(self._loops)
        self._loops += loops
        setattr(builtins, STEP, self.step)
        for number in range(first, len(self._loops)):
            self._possible.append(number)
            self._look_at(number)

    @property
    def loop_count(self) -> int:
        """Loops watched so far."""
        return len(self._loops)

    def step(self) -> None:
        """A step ends, says the program or the user."""
        self.marked("explicit", None)

    def marked(self, kind: str, key: object) -> None:
        """A mark of a source; a source of the same kind, key and thread is the same."""
        if not self._alive:
            return
        chosen, thread = self._chosen, threading.get_native_id()
        if chosen is not None and chosen.kind == kind and chosen.key == key and chosen.thread == thread:
            self._mark()
        elif chosen is None or KINDS.index(kind) < KINDS.index(chosen.kind):
            self._scout(kind, key)
        elif not self._is_settled:
            self._take_over(chosen, kind, key)
        elif chosen.kind == kind:
            self._others_ns, self._others = _clock(), "thread" if chosen.key == key else kind

    def _take_over(self, chosen: Candidate, kind: str, key: object) -> None:
        """Look for steps again if the chosen source, which has not warmed up, is silent; another source has just marked."""
        if chosen.kind != KINDS[0] and self._begin_ns and self._is_silent(chosen):
            self._give_up()
            self._begin_ns = 0
            self._candidates.clear()
            self._scouting_since = 0
            for number in self._possible:
                self._look_at(number)
            self._scout(kind, key)

    def _is_silent(self, chosen: Candidate) -> bool:
        return _clock() - self._begin_ns > max(_SILENT_NS, _SILENT_STEPS * chosen.interval_ns)

    def _scout(self, kind: str, key: object) -> None:
        # Another thread's mark at the same time is left out: nothing here may wait.
        if not self._alive or kind not in self._kinds or not self._scouting.acquire(blocking=False):
            return
        try:
            # A thread may have the identifier of one that has ended, but not its number.
            now_ns, thread = _clock(), threading.get_native_id()
            new = Candidate(kind, key, thread, first_ns=now_ns)
            candidate = self._candidates.setdefault((kind, key, thread), new)
            if (passed_ns := now_ns - candidate.looked_ns) < _SHORT_NS:
                candidate.short += 1
            elif candidate.marks and candidate.short < 0 and passed_ns >= _LONG_NS:
                candidate.skipped, candidate.short = candidate.short + _SKIPPED_MARKS, 0
            candidate.marks, candidate.last_ns = candidate.marks + 1, now_ns
            self._scouting_since = self._scouting_since or now_ns
            if kind == KINDS[-1] and candidate.short > max(_SHORT_MARKS, candidate.marks / 2):
                self._let_go_of_loop(key)
                return
            best = self._best(now_ns)
            # What is chosen is measured from a mark of its own on, in its own thread.
            if best is candidate:
                self._choose(best)
            candidate.looked_ns = _clock()
        finally:
            self._scouting.release()

    def _let_go_of_loop(self, number: Any) -> None:
        """Look no more at a loop whose iterations are too short."""
        self._possible.remove(number)
        self._candidates = {key: each for key, each in self._candidates.items() if key[:2] != (KINDS[-1], number)}
        self._bind(number)
        self._ticks[number] = lambda: _NEVER

    def _best(self, now_ns: int) -> Candidate | None:
        """The most reliable regular source; None while a more reliable one may yet become regular."""
        waited_ns = now_ns - self._scouting_since
        for kind in KINDS[:-1]:
            of_kind = [candidate for candidate in self._candidates.values() if candidate.kind == kind]
            most = max(of_kind, key=lambda candidate: candidate.marks, default=None)
            if most is not None and most.marks >= _REGULAR_MARKS:
                return most
            if most is not None and waited_ns < _LONG_SCOUTING_NS:
                return None
        if waited_ns < _SCOUTING_NS:
            return None
        least = _LOOP_MARKS if waited_ns < _LONG_SCOUTING_NS else _REGULAR_MARKS
        regular = [candidate for candidate in self._candidates.values() if candidate.marks >= least]
        # The outermost loop has the longest iterations.
        return max(regular, key=lambda candidate: candidate.interval_ns, default=None)

    def _give_up(self) -> None:
        """Stop measuring the chosen source; its steps so far count if it is chosen again."""
        chosen, self._chosen = self._chosen, None
        if chosen is not None:
            measured = self._area.read(Word.ROWS) + self._area.read(Word.LOST)
            self._passed[chosen.kind, chosen.key, chosen.thread] = self._before + measured

    def _forget(self, first: int) -> None:
        """Forget all candidates but those more reliable than ``KINDS[first]``, which may be about to become regular."""
        self._candidates = {key: each for key, each in self._candidates.items() if KINDS.index(each.kind) < first}

    def _choose(self, candidate: Candidate) -> None:
        """Measure the steps of a source from now on."""
        self._give_up()
        self._chosen = candidate
        self._forget(KINDS.index(candidate.kind))
        self._area.restart()
        self._is_measured = False
        self._recent = []
        self._reads_usage = candidate.interval_ns >= _COUNTED_STEP_NS
        self._plan = self._turns(candidate)
        self._deadline_ns = 0
        self._begin_ns = 0
        self._area.write(Word.THREAD, candidate.thread)
        self._area.write(Word.FOUND, 1)
        self._area.write(Word.ENOUGH, 0)
        self._is_settled = False
        for number in self._possible:
            if candidate.kind == "loop" and candidate.key == number:
                self._bind(number, self._mark, self._left)
                setattr(builtins, EACH.format(number), self._starting(number))
            else:
                self._bind(number, partial(self.marked, "loop", number))
        place = self._loops[candidate.key] if isinstance(candidate.key, int) and candidate.kind == "loop" else None
        home = None if place is None else [place.file, "", place.line, place.last_line]
        self._note(home=home, earlier=self._turns_of[candidate.thread], slowed=self._trace.sees_device)
        # A loop's mark begins a step, all others end one.
        thread = "" if candidate.thread == self._main else threading.current_thread().name
        passed = self._passed.get((candidate.kind, candidate.key, candidate.thread), 0)
        self._before = passed + candidate.marks - (candidate.kind == "loop")
        self._note(
            found_by=candidate.kind, before=self._before, thread=thread, first_ns=candidate.first_ns, settled_ns=0
        )
        self._mark()

    def _settle(self, candidate: Candidate) -> None:
        """Let go of all less reliable sources: the chosen steps have warmed up."""
        self._is_settled = True
        self._note(settled_ns=_clock())
        for kind in KINDS[KINDS.index(candidate.kind) + 1 :]:
            self.let_go.pop(kind, lambda: None)()
        for number in range(len(self._loops)):
            if candidate.kind != "loop" or candidate.key != number:
                self._bind(number)

    def _look_at(self, number: int) -> None:
        def tick() -> None:
            # What another loop does within a step of the chosen loop belongs to that step.
            chosen = self._chosen
            if chosen is None or not self._begin_ns or self._is_silent(chosen):
                self._scout("loop", number)

        self._bind(number, tick)

    def _bind(self, number: int, tick: Callable[[], Any] | None = None, left: Callable[[], Any] | None = None) -> None:
        """Run something after each iteration and at the end of a loop, until the loop starts again."""
        free = count().__next__
        self._ticks[number] = tick or free
        setattr(builtins, EACH.format(number), as_they_are if tick is None else self._ticking(number))
        setattr(builtins, TICK.format(number), tick or free)
        setattr(builtins, LEFT.format(number), left or free)

    def _ticking(self, number: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """An iterator that yields a loop's items and ticks after each, without a Python frame of its own.

        It keeps no item that the program lets go of; what a tick does may change, until one returns ``_NEVER``.
        """
        ticks = self._ticks
        return partial(compress, selectors=chain(iter(lambda: ticks[number]() or True, _NEVER), repeat(True)))

    def _starting(self, number: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """The same for the measured loop: a ``return`` or an exception may have left it, and what followed is not a step."""
        ticking = self._ticking(number)

        def start(items: Iterable[Any]) -> Iterator[Any]:
            if self._begin_ns:
                with suppress(Exception):
                    self._trace.abandon()
            self._begin_ns = 0
            return ticking(items)

        return start

    def _left(self) -> None:
        """The measured loop is over: what follows is not a step. After a loop too short to be measured another may be chosen."""
        end_ns = _clock()
        if not self._alive:
            return
        try:
            if self._begin_ns:
                self._add(end_ns)
            # The plan goes on when the loop starts again: its next step is the next that is looked at.
            self._trace.close_window()
        except Exception as error:
            self._fail(error)
        self._begin_ns = 0
        if self._alive and not self._is_measured:
            self._forget(KINDS.index("loop"))
            self._scouting_since = 0
            for number in self._possible:
                if self._chosen is not None and number != self._chosen.key:
                    self._look_at(number)

    # ------------------------------------------------------------------ steps

    def _mark(self) -> None:
        """End a step and begin the next."""
        end_ns = _clock()
        if not self._alive:
            return
        try:
            if self._begin_ns:
                self._add(end_ns)
            if end_ns >= self._deadline_ns:
                self._deadline_ns = next(self._plan, _FOREVER)
                self._between_ns[threading.get_ident()] += _clock() - end_ns
        except Exception as error:
            self._fail(error)
        self._begin_ns = _clock()

    def _add(self, end_ns: int) -> None:
        counters = _counters() if self._reads_usage else _NOT_COUNTED
        number, gc_ns = self.collected[-1]
        if not number % 2:
            gc_ns = self.collected[0][1]
        self._area.add(self._begin_ns, end_ns, self._phase, *counters, gc_ns, self.compile_ns, self.data_ns)
        if self._phase is Phase.WARM_UP:
            self._recent.append(end_ns - self._begin_ns)

    def _turns(self, chosen: Candidate) -> Iterator[int]:
        """The instruments in turns; yields when it is to be resumed."""
        self._phase = Phase.WARM_UP
        yield from self._warm_up()
        self._settle(chosen)
        traced_after = _TRACED_AFTER
        if self._trace.would_see_device():
            traced_after = _DEVICES_TRACED_AFTER
            self._note(untraced="the program ended before its devices were recorded, after 5 to 10 s of steps")
        sampled_ns, length_ns, turn = 0, _FIRST_SAMPLED_NS, 0
        while sampled_ns < _SAMPLED_NS and not self._is_enough():
            yield from self._sampled(length_ns)
            yield from self._bare(round(_BARE_SHARE * length_ns))
            sampled_ns, turn = sampled_ns + length_ns, turn + 1
            length_ns = min(2 * length_ns, _LONGEST_SAMPLED_NS)
            if turn == traced_after:
                yield from self._traced()
                if self._trace.sees_device:
                    break
                yield from self._bare(_FIRST_SAMPLED_NS)
        self._area.write(Word.ENOUGH, 1)
        if turn < traced_after:
            yield from self._bare(_FIRST_SAMPLED_NS)
            yield from self._traced()
        self._phase = Phase.AFTERWARDS if self._trace.sees_device else Phase.BARE
        length_ns = _REGIONS_NS
        while True:
            yield _clock() + length_ns
            self._write_regions()
            length_ns = min(2 * length_ns, _LONGEST_REGIONS_NS)

    def _warm_up(self) -> Iterator[int]:
        """Warm up until two windows of steps without a compilation take equally long, or the later one longer."""
        yield 0
        yield from self._locate()
        limit_ns = _clock() + _SETTLING_NS
        before_ns = float("inf")
        while _clock() < limit_ns:
            self._recent, compiled_ns, since_ns = [], self.compile_ns, _clock()
            while len(self._recent) < _WINDOW_STEPS or _clock() - since_ns < _WINDOW_NS:
                yield 0
            now_ns = median(self._recent)
            if self.compile_ns == compiled_ns and now_ns >= (1 - _SETTLED_SHARE) * before_ns:
                break
            before_ns = now_ns if self.compile_ns == compiled_ns else float("inf")

    def _locate(self) -> Iterator[int]:
        """Record the innermost frame that all steps share, which is the program's loop."""
        chosen = self._chosen
        if chosen is None or chosen.kind == "loop":
            return
        _sign(sys._getframe())
        yield 0
        home = _signed(sys._getframe())
        if home is not None:
            code, line = home
            self._note(home=[code.co_filename, code.co_name, line, line])

    def _bare(self, length_ns: int) -> Iterator[int]:
        self._phase = Phase.BARE
        until_ns = _clock() + length_ns
        for _ in range(_BARE_STEPS - 1):
            yield 0
        yield until_ns
        self._is_measured = True
        self._write_regions()

    def _sampled(self, length_ns: int) -> Iterator[int]:
        """Resume the sampler, and pause it again."""
        if self._affinity is not None and not self._area.read(Word.PLACED):
            # The program may have chosen them itself since the last turn.
            self._cores = self._affinity(0)
        self._phase = Phase.ATTACHING
        if (yield from self._request(_SAMPLE)):
            # Before its first stack: rather one turn too many is taken for one of earlier steps than one too few.
            self._turns_of[threading.get_native_id()] += 1
            hold_until_sampled(self._area)
            self._phase = Phase.SAMPLED
            yield _clock() + length_ns
            self._phase = Phase.ATTACHING
        yield from self._request(_REST)

    def _request(self, what: int) -> Generator[int, None, bool]:
        """Request what comes next from the recorder, and wait for its answer; whether it came."""
        area = self._area
        # Other steps may have been chosen in the middle of a turn.
        request = area.read(Word.REQUESTED) + 1
        request += request % 2 != what
        area.write(Word.REQUESTED, request)
        if request == 1:
            self._note(sampled_ns=_clock())
        if what == _SAMPLE:
            hold_until_resumed(area)
        limit_ns = _clock() + _ATTACHING_NS
        while area.read(Word.ANSWERED) < request:
            if self._is_enough() or _clock() > limit_ns:
                return False
            yield _clock() + _POLL_NS
        return True

    def _is_enough(self) -> bool:
        return any(map(self._area.read, (Word.ENOUGH, Word.REFUSED)))

    def _traced(self) -> Iterator[int]:
        trace = self._trace
        if threading.get_native_id() != self._main:
            self._note(untraced="they run in another thread than the main one")
            return
        step_ns = median(self._recent) if self._recent else 0.0
        if not trace.begin(step_ns):
            self._note(untraced=trace.reason)
            return
        self._phase, number = Phase.TRACED, 0
        try:
            while number < trace.steps:  # fewer if the recording ends within a step
                with trace.step(number):
                    yield 0
                number += 1
        finally:
            self._phase = Phase.ATTACHING
            trace.end()
            if trace.sees_device:
                self._note(traced_regions=dict(self._traced_regions))
            if whole := min(number, trace.steps):
                self._note(traced=whole, untraced="")
            elif trace.reason:
                self._note(untraced=trace.reason)

    # ------------------------------------------------------------------ regions

    def enter(self, name: str, code: CodeType, line: int, callers: tuple[tuple[CodeType, int], ...] = ()) -> None:
        """The calling thread enters a region."""
        others = ((other.co_filename, other.co_name, at) for other, at in callers)
        place = (code.co_filename, code.co_name, line or -code.co_firstlineno, *others)
        self._region_places.setdefault(name, set()).add(place)
        thread = threading.get_ident()
        self._inside[thread].append((name, _clock(), self._between_ns[thread]))

    def leave(self, name: str) -> None:
        """Leave the region; a region nested in itself counts once."""
        now_ns, thread = _clock(), threading.get_ident()
        inside = self._inside[thread]
        at = next((at for at in reversed(range(len(inside))) if inside[at][0] == name), None)
        if at is None:  # entered in another thread
            return
        _, begin_ns, between_ns = inside.pop(at)
        if not any(outer == name for outer, *_ in inside):
            self._regions[name, self._phase].add(now_ns - begin_ns - (self._between_ns[thread] - between_ns))
            if self._phase is Phase.TRACED and len(self._traced_regions[name]) < _MOST_ENTRIES:
                self._traced_regions[name].append((begin_ns, now_ns))

    def _write_regions(self) -> None:
        rows = [[name, int(phase), *entries.row()] for (name, phase), entries in self._regions.items()]
        if rows:
            places = {name: sorted(its) for name, its in self._region_places.items()}
            self._note(regions=rows, region_places=places)

    # ------------------------------------------------------------------ what the recorder reads

    def compiled(self, begin_ns: int, reason: str) -> None:
        """A compilation has ended."""
        now_ns = _clock()
        self.compile_ns += now_ns - begin_ns
        if self._alive:
            self._note(compiled=[begin_ns, now_ns, reason])

    def finish(self) -> None:
        """The program's own code has ended."""
        if self._alive:
            self._area.write(Word.FINISHED_NS, _clock())
            self._note(cpu_ns=_cpu_ns(resource.RUSAGE_SELF), children_cpu_ns=_cpu_ns(resource.RUSAGE_CHILDREN))
            self._note(others_ns=self._others_ns, others=self._others)
            self._write_regions()
            self._alive = False
            # A profiler that is on when the interpreter ends would crash it.
            with suppress(Exception):
                if isinstance(self._plan, Generator):
                    self._plan.close()
                self._trace.end()

    def cores_of(self, pid: int, /) -> set[int]:
        """What ``os.sched_getaffinity`` returns; for the thread with the steps, while it is kept on a core, its cores before."""
        cores: set[int] = self._affinity(pid)
        has_steps = (pid or threading.get_native_id()) == self._area.read(Word.THREAD)
        return {*self._cores} if has_steps and cores == {self._area.read(Word.PLACED) - 1} else cores

    def make_way(self, profile: object) -> None:
        """The program is about to start a profiler of its own."""
        with suppress(Exception):
            self._trace.make_way(profile)

    def silence(self, profile: object) -> None:
        """The program's own profiler is about to begin a step."""
        self._trace.silence(profile)

    def _note(self, **fields: Any) -> None:
        # A full disk is not the program's concern.
        with suppress(OSError), (self._folder / NOTES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")

    def _fail(self, error: Exception) -> None:
        """Leave the rest of the program unwatched: there is a defect here, or a signal handler of the program raised an error."""
        self._alive = False
        if self._phase is not Phase.WARM_UP:
            self._area.write(Word.ENOUGH, 1)
        is_of_handler = _is_of_handler(error)
        self._note(**{"interrupted" if is_of_handler else "defect": in_one_line(error)})
        if is_of_handler:
            raise error

    def _in_child(self) -> None:
        """In a forked child: stop watching, and restore the cores that its parent had before placement."""
        self._alive = False
        self._trace.forget()
        core = self._area.read(Word.PLACED) - 1
        if core < 0:
            return
        with suppress(OSError):
            # The program may have chosen others meanwhile.
            if self._affinity(0) in ({core}, self._cores - {core}):
                os.sched_setaffinity(0, self._cores)
            if os.sched_getscheduler(0) == os.SCHED_BATCH:
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _counters() -> tuple[int, int, int, int]:
    """CPU time in the program and in the kernel, page faults and switches of this thread so far."""
    usage = resource.getrusage(_USAGE_OF)
    return round(usage.ru_utime * 1e9), round(usage.ru_stime * 1e9), usage.ru_minflt, usage.ru_nivcsw


def _cpu_ns(who: int) -> int:
    """CPU time of the process, or of those of its children that have ended."""
    usage = resource.getrusage(who)
    return round((usage.ru_utime + usage.ru_stime) * 1e9)


def _is_of_handler(error: Exception) -> bool:
    """Whether a signal handler raised an error: Python calls it wherever the main thread is, and hands it the frame there."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_back and not _is_ours(frame)]
    handed = ((frame, value) for frame in frames for value in frame.f_locals.values())
    # Some take all arguments as one tuple.
    return any(
        each is frame.f_back for frame, value in handed for each in (value if type(value) is tuple else (value,))
    )


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OURS)


def _sign(frame: FrameType | None) -> None:
    """Sign a frame and those around it. To keep them would keep what a step's functions leave behind, such as its logits."""
    while frame is not None:
        frame.f_trace_lines = False  # which only a debugger looks at
        frame = frame.f_back


def _signed(frame: FrameType | None) -> tuple[CodeType, int] | None:
    """The innermost of the program's signed frames around ``frame``, its code and its line; their signs are taken off.

    Not that of a generator or coroutine, which is on no stack while it is suspended.
    """
    home = None
    while frame is not None:
        if not frame.f_trace_lines:
            frame.f_trace_lines = True
            if home is None and not _is_ours(frame) and not frame.f_code.co_flags & _SUSPENDED:
                home = frame.f_code, frame.f_lineno
        frame = frame.f_back
    return home
