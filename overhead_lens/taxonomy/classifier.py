"""Applies the rules to stacks and trace events.

A stack is read from its outermost frame inwards while one attribution (category and part) is carried along::

    frame                                   rule                        attribution after it
    add1 (add1.py)                          python, user                python/user
      torch::autograd::THPVariable_add      python, binding             python/binding
        at::_ops::add_Tensor::call          dispatcher, dispatch        dispatcher/dispatch
          at::detail::empty_cpu             allocation, scope           allocation/tensor
            c10::alloc_cpu                  (inside a scope)            allocation/tensor
              0x7f.. (libc.so.6)            neutral: inherits           allocation/tensor

A frame without a rule is ``unattributed`` and listed by name. A *scope* keeps its attribution for
everything below it (the Python code of a lambda guard is guard time); only scopes of the same category refine its part, and a
scope that applies under its category alone replaces it (a copy from pageable memory waits in the call that launches it). A rule
with ``under`` applies only below the given categories (``malloc`` is allocation under an operator, and ``python`` under the
interpreter). A rule with ``calls`` names the category of what its code calls: the code that enters a kernel is
``dispatcher``, and native code below it that no rule knows is ``kernel``. A ``mostly_own`` rule applies only to functions that
spend most of their time in a capture in themselves (``Classifier.fitted``): their names do not show whether they set work up or
do it in a loop of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from overhead_lens.stack import Stack, StackFrame
from overhead_lens.taxonomy import names, torch_names
from overhead_lens.taxonomy.rules import NEUTRAL, Attribution, Rule, all_rules, without_return_type

UNATTRIBUTED = Attribution("unattributed")


@dataclass(frozen=True, slots=True)
class Carried:
    """The attribution carried from frame to frame, whether it comes from a scope, and the category called for, if not its own."""

    attribution: Attribution = UNATTRIBUTED
    in_scope: bool = False
    calls: str = ""

    @property
    def callers(self) -> tuple[str, str, str]:
        """The callers' categories that ``under`` of a rule matches."""
        return self.attribution.category, str(self.attribution), self.calls


@dataclass(frozen=True, slots=True)
class Claim:
    """A frame's attribution given its caller's, and the matching rule; None without one."""

    carried: Carried
    rule: Rule | None


@dataclass(frozen=True, slots=True)
class Classified:
    """A stack's attribution, and its innermost frame that is to be shown."""

    attribution: Attribution
    frame: StackFrame


class Classifier:
    """Applies ordered rules to frames, stacks and trace events.

    Args:
        rules: The first match wins.
        working: Native symbols to which ``mostly_own`` rules apply; None for all.
    """

    def __init__(self, rules: Iterable[Rule], working: frozenset[str] | None = frozenset()) -> None:
        self.working, rules = working, tuple(rules)
        self._native_rules = tuple(rule for rule in rules if rule.native or rule.module)
        self._python_rules = tuple(rule for rule in rules if rule.file or rule.function)
        self._event_rules = tuple(rule for rule in rules if rule.event or rule.event_category)
        self._claim = lru_cache(maxsize=None)(self._find_claim)
        self.event_verdict = lru_cache(maxsize=None)(self._find_event_verdict)
        self.may_work = lru_cache(maxsize=None)(self._find_may_work)

    def classify(self, stack: Stack) -> Classified:
        """The stack's attribution, carried from the outermost frame inwards, and the frame to show."""
        carried, shown_at = self.walk(stack)
        return Classified(carried.attribution, _display_frame(stack.frames, shown_at))

    def fitted(self, stacks: Iterable[Stack]) -> Classifier:
        """The classifier whose ``mostly_own`` rules apply to functions that are mostly shown in their stacks."""
        all_working = self.knowing(None)
        shown: Counter[str] = Counter()
        present: Counter[str] = Counter()
        for stack in stacks:
            if candidates := {frame.function for frame in stack.frames if self.may_work(frame)}:
                function = stack.frames[all_working.walk(stack)[1]].function
                present.update(dict.fromkeys(candidates, stack.count))
                shown[function] += stack.count * (function in candidates)
        return self.knowing(frozenset(symbol for symbol, count in present.items() if 2 * shown[symbol] > count))

    def walk(self, stack: Stack) -> tuple[Carried, int]:
        """The attribution at the innermost frame, and the index of the innermost frame that is shown by name."""
        carried, shown_at = Carried(), 0
        for place, frame in enumerate(stack.frames):
            claim = self.claim(frame, carried)
            if claim.rule is None or claim.rule.shown:
                shown_at = place
            carried = claim.carried
        return carried, shown_at

    def knowing(self, working: frozenset[str] | None) -> Classifier:
        """The classifier whose ``mostly_own`` rules apply to these native symbols; None for all. It knows what this one found."""
        made = copy(self)
        made.working = working
        return made

    def enter(self, frame: StackFrame, carried: Carried) -> Carried:
        """One step of ``classify``: the attribution below ``frame``."""
        return self.claim(frame, carried).carried

    def claim(self, frame: StackFrame, carried: Carried) -> Claim:
        """One step of ``classify``, with the rule that decided it."""
        return self._claim(frame, carried, self.working is None or frame.function in self.working)

    def serves(self, frame: StackFrame, caller: Attribution) -> bool:
        """Whether a frame is neutral, so that its time belongs to its caller."""
        rule = self.claim(frame, Carried(caller)).rule
        return rule is not None and rule.attribution.category == NEUTRAL

    def classify_event(self, name: str, event_category: str) -> Attribution:
        """The attribution of a trace event's self time."""
        return self.event_verdict(name, event_category)[0]

    def _find_claim(self, frame: StackFrame, carried: Carried, works: bool) -> Claim:
        callers = carried.callers
        for rule in self._rules_of(frame):
            if (works or not rule.mostly_own) and rule.fits_frame(frame, callers):
                return Claim(_carry(rule, carried), rule)
        return Claim(_carry(None, carried), None)

    def _rules_of(self, frame: StackFrame) -> Sequence[Rule]:
        return self._native_rules if frame.native else self._python_rules

    def _find_may_work(self, frame: StackFrame) -> bool:
        """Whether a ``mostly_own`` rule fits ``frame``."""
        rules = (rule for rule in self._rules_of(frame) if rule.mostly_own)
        return any(rule.fits_frame(frame, (UNATTRIBUTED.category,)) for rule in rules)

    def _find_event_verdict(self, name: str, event_category: str) -> tuple[Attribution, bool]:
        """The attribution of a trace event's self time; and whether it keeps all events below it."""
        rule = next((rule for rule in self._event_rules if rule.fits_event(name, event_category)), None)
        return (UNATTRIBUTED, False) if rule is None else (rule.attribution, rule.scope)


def _carry(rule: Rule | None, carried: Carried) -> Carried:
    """The attribution below a frame that ``rule`` fits."""
    if rule is not None and rule.attribution.category == NEUTRAL:
        return carried
    if rule is None:
        return carried if carried.in_scope else Carried()
    if carried.in_scope:
        category = carried.attribution.category
        if not (rule.scope and (rule.attribution.category == category or rule.under == {category})):
            return carried
    return Carried(rule.attribution, rule.scope, rule.calls)


def _display_frame(frames: Sequence[StackFrame], shown_at: int) -> StackFrame:
    """The frame at ``shown_at``; without a name, or with a kernel's opaque one, it is named by the operator that it works for.

    A function without a symbol is named by the function of its library that was called: ``cuLaunchKernel``.
    """
    frame = frames[shown_at]
    if names.is_nameless(frame):
        callers = takewhile(lambda caller: caller.location == frame.location, reversed(frames[:shown_at]))
        frame = next(filter(lambda caller: caller.function, callers), frame)
    is_opaque = frame.native and torch_names.OPAQUE_KERNEL.match(without_return_type(frame.function))
    if not is_opaque and not names.is_nameless(frame):
        return frame
    entries = (torch_names.OPERATOR_ENTRY.match(caller.function) for caller in reversed(frames[:shown_at]))
    entry = next(filter(None, entries), None)
    return frame if entry is None else replace(frame, function=torch_names.operator_of_entry(entry["name"]), line=0)


def default_classifier(extra: Path | None = None) -> Classifier:
    """The classifier of the rules in ``extra``, then of the built-in rules."""
    return Classifier(all_rules(extra))
