"""The classifier: applies the rules to stacks and trace events.

A stack is read from its outermost frame inwards while one *claim* (category and part) is carried along::

    frame                                   rule                        claim after it
    add1 (add1.py)                          python, user                python/user
      torch::autograd::THPVariable_add      python, binding             python/binding
        at::_ops::add_Tensor::call          dispatcher, dispatch        dispatcher/dispatch
          at::detail::empty_cpu             allocation, scope           allocation/tensor
            c10::alloc_cpu                  (inside a scope)            allocation/tensor
              0x7f.. (libc.so.6)            neutral: inherits           allocation/tensor

A frame that no rule knows is ``unattributed`` and is listed by name; it is never guessed. A *scope* keeps its claim for
everything below it, whatever that is (the Python code of a lambda guard is guard time); only rules of the same category
still refine its part. A rule with ``under`` applies
only where the current claim is of one of those categories (``malloc`` is allocation under an operator, but Python's own
business under the interpreter). One that is ``mostly_own`` holds only for functions that spend most of their time in a
capture themselves (``Classifier.fitted``): such a function sets work up by calling others, or does the work in a loop of its
own, and its name does not tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from overhead_lens.stack import Stack, StackFrame
from overhead_lens.taxonomy.rules import NEUTRAL, Attribution, Rule, load_rules

UNATTRIBUTED = Attribution("unattributed")


@dataclass(frozen=True, slots=True)
class Carried:
    """What is carried from frame to frame: the claim, and whether it is that of a scope."""

    attribution: Attribution = UNATTRIBUTED
    in_scope: bool = False


@dataclass(frozen=True, slots=True)
class Classified:
    """A stack's verdict.

    Attributes:
        claim: What the stack's time belongs to.
        frame: The innermost frame that is not neutral: the one to show a person.
    """

    attribution: Attribution
    frame: StackFrame


class Classifier:
    """Applies ordered rules to frames, stacks and trace events.

    Args:
        rules: First match wins.
        working: Native symbols for which ``mostly_own`` rules hold; None for all.
    """

    def __init__(self, rules: Iterable[Rule], working: frozenset[str] | None = frozenset()) -> None:
        self._rules = tuple(rules)
        self._working = working
        self._event_rules = tuple(
            rule for rule in self._rules if rule.event is not None or rule.event_category is not None
        )
        self._frame_rule = lru_cache(maxsize=None)(self._find_frame_rule)
        self._event_claim = lru_cache(maxsize=None)(self._find_event_claim)
        self._may_work = lru_cache(maxsize=None)(self._find_may_work)

    def classify(self, stack: Stack) -> Classified:
        """The claim of the innermost frame, found from the outermost inwards, and the frame to name for it."""
        carried, shown = Carried(), stack.frames[0]
        for frame in stack.frames:
            rule = self._frame_rule(frame, carried.attribution)
            if rule is None or rule.attribution.category != NEUTRAL or rule.shown:
                shown = frame
            carried = _carry(rule, carried)
        return Classified(carried.attribution, shown)

    def fitted(self, stacks: Iterable[Stack]) -> Classifier:
        """The classifier whose ``mostly_own`` rules hold for functions that spend most of these stacks themselves."""
        supposed = self.knowing(None)
        own: Counter[str] = Counter()
        under: Counter[str] = Counter()
        for stack in stacks:
            if found := {frame.function for frame in stack.frames if self.may_work(frame)}:
                shown = supposed.classify(stack).frame.function
                under.update(dict.fromkeys(found, stack.count))
                own[shown] += stack.count * (shown in found)
        return self.knowing(frozenset(symbol for symbol, count in under.items() if 2 * own[symbol] > count))

    def may_work(self, frame: StackFrame) -> bool:
        """Whether a ``mostly_own`` rule claims ``frame`` where it holds."""
        return self._may_work(frame)

    def knowing(self, working: frozenset[str] | None) -> Classifier:
        """The classifier whose ``mostly_own`` rules hold for these native symbols; None for all."""
        return Classifier(self._rules, working)

    def enter(self, frame: StackFrame, carried: Carried) -> Carried:
        """What is carried on below ``frame`` where ``carried`` came to it: one step of ``classify``."""
        return _carry(self._frame_rule(frame, carried.attribution), carried)

    def serves(self, frame: StackFrame, caller: Attribution) -> bool:
        """Whether a frame is neutral: its time belongs to the caller of this claim."""
        rule = self._frame_rule(frame, caller)
        return rule is not None and rule.attribution.category == NEUTRAL

    def classify_event(self, name: str, event_category: str) -> Attribution:
        """The claim of a trace event's self time."""
        return self.event_verdict(name, event_category)[0]

    def event_verdict(self, name: str, event_category: str) -> tuple[Attribution, bool]:
        """The claim of a trace event's self time, and whether it is a scope: all events below it belong to it too."""
        return self._event_claim(name, event_category)

    def _find_frame_rule(self, frame: StackFrame, current: Attribution) -> Rule | None:
        holding = (rule for rule in self._rules if not rule.mostly_own or self._works(frame))
        return next((rule for rule in holding if rule.fits_frame(frame, current)), None)

    def _find_may_work(self, frame: StackFrame) -> bool:
        return any(rule.mostly_own and rule.fits_frame(frame, UNATTRIBUTED) for rule in self._rules)

    def _works(self, frame: StackFrame) -> bool:
        return self._working is None or frame.function in self._working

    def _find_event_claim(self, name: str, event_category: str) -> tuple[Attribution, bool]:
        rule = next((rule for rule in self._event_rules if rule.fits_event(name, event_category)), None)
        return (UNATTRIBUTED, False) if rule is None else (rule.attribution, rule.scope)


def _carry(rule: Rule | None, carried: Carried) -> Carried:
    """What is carried on below a frame that ``rule`` claims."""
    if rule is not None and rule.attribution.category == NEUTRAL:
        return carried
    found = UNATTRIBUTED if rule is None else rule.attribution
    if carried.in_scope and found.category != carried.attribution.category:
        return carried
    return Carried(found, carried.in_scope or (rule is not None and rule.scope))


def default_classifier(extra: Path | None = None) -> Classifier:
    """The classifier of the built-in rules, those of ``extra`` before them."""
    return Classifier((*(load_rules(extra) if extra else ()), *load_rules()))
