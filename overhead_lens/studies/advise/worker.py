"""Tries remedies on a call beside the call as it is, in one process. Runs in the worker."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from overhead_lens.errors import MeasurementError, OverheadLensError, first_line
from overhead_lens.instruments.ablation.rungs import RungCall
from overhead_lens.instruments.ablation.worker import RungTimer
from overhead_lens.remedies.remedy import Call, NotApplicableError, Remedy, refuse
from overhead_lens.worker.outputs import CLOSE, EQUAL, UNKNOWN, Outcome, compared, outcome_of, what_differs
from overhead_lens.worker.remedied import Remedied, changed, known_remedies, remedied
from overhead_lens.worker.runtime import float32_products
from overhead_lens.worker.session import Session, method, operation
from overhead_lens.worker.workload import NO_COMPILER, Workload, lacks_compiler

BASE = "base"
_TRIALS = "advise"
_OUTCOMES = "outcomes.pt"
_LISTED = ("name", "summary", "how", "safety", "shrinks", "source", "group", "own_process")
# Variables that Inductor sets: addresses for the code that it generates, and where it keeps this code.
_INDUCTORS = ("_TORCHINDUCTOR_", "TORCHINDUCTOR_CACHE_DIR")


class Trials:
    """The remedies of one workload in this process, and the ways to call it that are ready to be timed."""

    def __init__(self, workload: Workload, file: str | None, folder: Path) -> None:
        self._workload, self._folder = workload, folder
        self.known: Mapping[str, Remedy] = known_remedies(workload, file)
        self._rungs = [RungCall(BASE, workload.call, workload.args, keywords=workload.keywords)]
        self._base = _outcome(Remedied(workload))
        # The check of a call that changes its own state may hold for the first call only.
        self.checks = _is_accepted(workload)
        again = _outcome(Remedied(workload))
        verdict, path = compared(self._base, again), what_differs(self._base, again)
        self.repeats = verdict in (EQUAL, CLOSE)
        left = f"called twice, it leaves another {path}" if path else ""
        self.reason = self._base.reason or ("it cannot be compared" if verdict == UNKNOWN else left)

    def applies(self, name: str) -> dict[str, Any]:
        """Whether a remedy that needs a process of its own can be tried; returns the fields of ``stored.Trial``."""
        try:
            remedied(self._workload, [self.known[name]], self._folder)
        except Exception as error:
            return _refused(error)
        return _trial("measured", None)

    def prepare(self, name: str) -> dict[str, Any]:
        """Make the call with a remedy once; returns the fields of ``stored.Trial``."""
        made, trial = self._tried([name])
        if made is not None:
            workload = made.workload
            self._rungs.append(RungCall(name, workload.call, workload.args, made.entered, keywords=workload.keywords))
        return trial

    def combine(self, names: Sequence[str]) -> dict[str, Any]:
        """Make the call with several remedies once; returns the fields of ``stored.Trial``."""
        try:
            # A remedy that undoes another one does not do so in the other order, or cannot be applied then.
            orders = (names, [names[-1], *names[:-1]])
            one, other = (changed(self._workload, self._remedies(order), self._folder) for order in orders)
            refuse(_change(one) != _change(other), "one remedy undoes another")
        except Exception as error:
            return _refused(error)
        return self._tried(names)[1]

    def _remedies(self, names: Sequence[str]) -> list[Remedy]:
        return [self.known[name] for name in names]

    def _tried(self, names: Sequence[str]) -> tuple[Remedied | None, dict[str, Any]]:
        """The call with remedies, made once, and the fields of ``stored.Trial``; None if it could not be made."""
        before = _state()
        try:
            made = remedied(self._workload, self._remedies(names), self._folder)
            outcome = _outcome(made, checks=self.checks)
        except Exception as error:
            return None, _refused(error, leaks=not isinstance(error, NotApplicableError) and before != _state())
        output = compared(self._base, outcome) if self.repeats else UNKNOWN
        loses = self._base.gradients > outcome.gradients
        return made, _trial("measured", None, output=output, loses_gradient=loses, leaks=before != _state())

    def measure(self, block_ns: int, rounds: int, budget_ns: int, seed: int) -> dict[str, Any]:
        """Time the call as it is and with every remedy that was prepared, in turns."""
        return RungTimer(self._rungs, [], self._workload.synchronize).measure(block_ns, rounds, budget_ns, seed)

    def save(self) -> None:
        """Write the outcome of the call as it is, for processes that try one remedy each."""
        file, base = self._folder / _OUTCOMES, self._base
        same = [path for path, leaf in base.after.items() if leaf is base.before.get(path, self)]
        changed = {path: leaf for path, leaf in base.after.items() if path not in {*same}}
        try:
            torch.save((base.returned, changed, same, base.reason, self.repeats, self.checks), file)
        except Exception as error:
            torch.save((None, {}, [], f"it cannot be written: {type(error).__name__}", False, self.checks), file)


def _outcome(made: Remedied, *, checks: bool = False) -> Outcome:
    """The outcome inside all contexts, which are left before the state is compared.

    Raises:
        MeasurementError: The scenario ``checks`` the result, and it is wrong.
    """
    workload = made.workload
    call = partial(_checked, workload) if checks else workload.call
    function = workload.scenario.variants[workload.variant]
    contexts = [made.entered_at_first, made.entered] if made.late_contexts else [made.entered]
    outcomes = [
        outcome_of(call, workload.args, workload.keywords, function=function, inside=context) for context in contexts
    ]
    return outcomes[-1]


def _is_accepted(workload: Workload) -> bool:
    """Whether the scenario accepts another result of its call without remedies."""
    try:
        _outcome(Remedied(workload), checks=True)
    except MeasurementError:
        return False
    return True


def _checked(workload: Workload, *args: Any, **keywords: Any) -> Any:
    output, check = workload.call(*args, **keywords), workload.scenario.check
    try:
        if check is not None:
            check(workload.params, (*args, *keywords.values()), output)
    except Exception as error:
        raise MeasurementError(f"it gives a wrong result: {first_line(error)}"[:300]) from error
    return output


def _change(call: Call) -> tuple[object, ...]:
    """What remedies made of a call, without the objects that they make again each time."""
    code = getattr(call.function, "__code__", type(call.function))
    return code, call.keywords, call.compile_options, call.build, len(call.contexts), len(call.late_contexts)


def _trial(status: str, reason: str | None, **fields: Any) -> dict[str, Any]:
    defaults = {"output": UNKNOWN, "loses_gradient": False, "leaks": False}
    return {"status": status, "reason": reason, **defaults, **fields}


def _state() -> tuple[object, ...]:
    """The state of this process that a remedy might change for later remedies."""
    return (
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        float32_products(),
        gc.isenabled(),
        gc.get_threshold(),
        {name: text for name, text in os.environ.items() if not name.startswith(_INDUCTORS)},
    )


def _refused(error: Exception, **fields: Any) -> dict[str, Any]:
    if isinstance(error, NotApplicableError):
        return _trial("not_applicable", str(error), **fields)
    return _trial("failed", _why(error), **fields)


def _why(error: Exception) -> str:
    if isinstance(error, OverheadLensError):
        return str(error)
    if lacks_compiler(error):
        return NO_COMPILER
    return first_line(error)[:300]


@operation
def list_remedies(session: Session, file: str | None, folder: str) -> dict[str, Any]:
    """List the remedies that there are, after a call as it is; keep its outcome in a file."""
    from torch._dynamo.utils import counters

    trials = Trials(session.workload, file, Path(folder))
    trials.save()
    session.state[_TRIALS] = trials
    listed = [
        {**{name: getattr(remedy, name) for name in _LISTED}, "variables": dict(remedy.variables())}
        for remedy in trials.known.values()
    ]
    return {
        "remedies": listed,
        "repeats": trials.repeats,
        "reason": trials.reason,
        "graph_breaks": bool(counters["graph_break"]),
    }


check_remedy, prepare_remedy = method(_TRIALS, Trials.applies), method(_TRIALS, Trials.prepare)
combine_remedies, time_remedies = method(_TRIALS, Trials.combine), method(_TRIALS, Trials.measure)


@operation
def compare_outcome(session: Session, folder: str) -> dict[str, Any]:
    """Hold the call of this process, which has remedies, against the outcome of the call as it is."""
    returned, changed, same, reason, repeats, checks = torch.load(Path(folder) / _OUTCOMES, weights_only=False)
    try:
        own = _outcome(Remedied(session.workload), checks=checks)
    except Exception as error:
        return _trial("failed", _why(error))
    left = {path: own.before[path] for path in same if path in own.before}
    base = Outcome(returned, {**left, **changed}, reason=reason)
    output = compared(base, own) if repeats else UNKNOWN
    return _trial("measured", None, output=output, loses_gradient=base.gradients > own.gradients)
