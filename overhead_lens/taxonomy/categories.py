"""The taxonomy, the rules that claim frames and events for it, and the classifier that applies them.

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

import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from overhead_lens.errors import UsageError
from overhead_lens.stack import Stack, StackFrame

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HOST_CATEGORIES: tuple[str, ...] = (
    "python",
    "guard",
    "dispatcher",
    "allocation",
    "kernel",
    "launch",
    "wait",
    "compile",
    "unattributed",
)

PARTS: dict[str, tuple[str, ...]] = {
    "python": ("user", "framework", "compiled_runtime", "binding"),
    "dispatcher": ("dispatch", "autograd", "op_setup"),
    "allocation": ("tensor", "storage", "page_fault"),
}

NEUTRAL = "neutral"

RULES_FILE = Path(__file__).with_name("rules.toml")

# What a C++ symbol is split at; an argument list, a lambda or an operator ends the part in which a return type may stand.
_NAME_ENDS = ("operator", "(", "{")
_TOKEN = re.compile(r"\boperator\b|\(anonymous namespace\)|->|[<> ({]")

_KEYS = {
    "category",
    "part",
    "native",
    "module",
    "file",
    "function",
    "event",
    "event_category",
    "under",
    "scope",
    "shown",
    "mostly_own",
    "source",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """What the time of a frame belongs to."""

    category: str
    part: str | None = None


UNCLAIMED = Claim("unattributed")


@dataclass(frozen=True, slots=True)
class Carried:
    """What is carried from frame to frame: the claim, and whether it is that of a scope."""

    claim: Claim = UNCLAIMED
    in_scope: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of ``rules.toml``.

    Attributes:
        claim: What it claims; category ``neutral`` inherits from the nearest claimed ancestor.
        native: Pattern for a native symbol, matched from its start; a return type is no part of it.
        module: Pattern for a native frame's module, matched from its start.
        file: Pattern searched in a Python frame's file.
        function: Pattern for a Python frame's function, matched from its start.
        event: Pattern for a trace event's name, matched from its start.
        event_category: Pattern for a trace event's category, matched whole.
        under: Categories of which the current claim must be one; empty for any.
        scope: Whether everything below belongs to it too.
        shown: Whether a frame of a neutral rule is named nevertheless.
        mostly_own: Whether it holds only for functions that spend most of their time themselves.
        source: The file in PyTorch (or elsewhere) that justifies it.
    """

    claim: Claim
    native: re.Pattern[str] | None
    module: re.Pattern[str] | None
    file: re.Pattern[str] | None
    function: re.Pattern[str] | None
    event: re.Pattern[str] | None
    event_category: re.Pattern[str] | None
    under: frozenset[str]
    scope: bool
    shown: bool
    mostly_own: bool
    source: str

    def fits_frame(self, frame: StackFrame, current: Claim) -> bool:
        """Whether the rule claims ``frame`` where ``current`` is the claim of its caller."""
        if self.under and current.category not in self.under:
            return False
        if frame.native:
            wanted = (self.native, self.module)
            return wanted != (None, None) and _all_match(wanted, (without_return_type(frame.function), frame.location))
        if self.file is None and self.function is None:
            return False
        in_file = self.file is None or self.file.search(frame.location) is not None
        return in_file and (self.function is None or self.function.match(frame.function) is not None)

    def fits_event(self, name: str, event_category: str) -> bool:
        """Whether the rule claims a trace event."""
        if self.event is None and self.event_category is None:
            return False
        by_name = self.event is None or self.event.match(name) is not None
        return by_name and (self.event_category is None or self.event_category.fullmatch(event_category) is not None)


@dataclass(frozen=True, slots=True)
class Classified:
    """A stack's verdict.

    Attributes:
        claim: What the stack's time belongs to.
        frame: The innermost frame that is not neutral: the one to show a person.
    """

    claim: Claim
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
            rule = self._frame_rule(frame, carried.claim)
            if rule is None or rule.claim.category != NEUTRAL or rule.shown:
                shown = frame
            carried = _carry(rule, carried)
        return Classified(carried.claim, shown)

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
        return _carry(self._frame_rule(frame, carried.claim), carried)

    def serves(self, frame: StackFrame, caller: Claim) -> bool:
        """Whether a frame is neutral: its time belongs to the caller of this claim."""
        rule = self._frame_rule(frame, caller)
        return rule is not None and rule.claim.category == NEUTRAL

    def classify_event(self, name: str, event_category: str) -> Claim:
        """The claim of a trace event's self time."""
        return self.event_verdict(name, event_category)[0]

    def event_verdict(self, name: str, event_category: str) -> tuple[Claim, bool]:
        """The claim of a trace event's self time, and whether it is a scope: all events below it belong to it too."""
        return self._event_claim(name, event_category)

    def _find_frame_rule(self, frame: StackFrame, current: Claim) -> Rule | None:
        holding = (rule for rule in self._rules if not rule.mostly_own or self._works(frame))
        return next((rule for rule in holding if rule.fits_frame(frame, current)), None)

    def _find_may_work(self, frame: StackFrame) -> bool:
        return any(rule.mostly_own and rule.fits_frame(frame, UNCLAIMED) for rule in self._rules)

    def _works(self, frame: StackFrame) -> bool:
        return self._working is None or frame.function in self._working

    def _find_event_claim(self, name: str, event_category: str) -> tuple[Claim, bool]:
        rule = next((rule for rule in self._event_rules if rule.fits_event(name, event_category)), None)
        return (UNCLAIMED, False) if rule is None else (rule.claim, rule.scope)


def _carry(rule: Rule | None, carried: Carried) -> Carried:
    """What is carried on below a frame that ``rule`` claims."""
    if rule is not None and rule.claim.category == NEUTRAL:
        return carried
    found = UNCLAIMED if rule is None else rule.claim
    if carried.in_scope and found.category != carried.claim.category:
        return carried
    return Carried(found, carried.in_scope or (rule is not None and rule.scope))


def load_rules(path: Path = RULES_FILE) -> tuple[Rule, ...]:
    """Read a rules file.

    Raises:
        UsageError: Not TOML, an unknown key, category or part, or a bad pattern; the message names the rule.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read rules {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    entries = document.get("rule")
    if not isinstance(entries, list) or set(document) != {"rule"}:
        raise UsageError(f"{path} must hold [[rule]] entries and nothing else")
    return tuple(_parse_rule(entry, f"{path.name}, rule {number}") for number, entry in enumerate(entries, 1))


def default_classifier(extra: Path | None = None) -> Classifier:
    """The classifier of the built-in rules, those of ``extra`` before them."""
    return Classifier((*(load_rules(extra) if extra else ()), *load_rules()))


def _parse_rule(entry: dict[str, Any], where: str) -> Rule:
    unknown = set(entry) - _KEYS
    if unknown:
        raise UsageError(f"{where}: unknown key {min(unknown)!r}")
    category, part = entry.get("category"), entry.get("part")
    if category not in (*HOST_CATEGORIES, NEUTRAL):
        raise UsageError(f"{where}: no category {category!r}; it is one of {', '.join(HOST_CATEGORIES)}, {NEUTRAL}")
    if (part is None) != (category not in PARTS) or (part is not None and part not in PARTS[category]):
        raise UsageError(f"{where}: {category} needs a part of {PARTS.get(category, ('none',))}, not {part!r}")
    if not entry.get("source"):
        raise UsageError(f"{where}: say in 'source' which file justifies it")
    under = frozenset(entry.get("under", ()))
    if not under <= set(HOST_CATEGORIES):
        raise UsageError(f"{where}: 'under' names an unknown category")
    names = ("native", "module", "file", "function", "event", "event_category")
    native, module, file, function, event, event_category = (
        _pattern(entry.get(name), f"{where}, {name}") for name in names
    )
    return Rule(
        Claim(category, part),
        native,
        module,
        file,
        function,
        event,
        event_category,
        under,
        scope=bool(entry.get("scope")),
        shown=bool(entry.get("shown")),
        mostly_own=bool(entry.get("mostly_own")),
        source=entry["source"],
    )


def _pattern(texts: str | list[str] | None, where: str) -> re.Pattern[str] | None:
    if texts is None:
        return None
    alternatives = [texts] if isinstance(texts, str) else texts
    try:
        return re.compile("|".join(f"(?:{text})" for text in alternatives))
    except re.error as error:
        raise UsageError(f"{where}: bad pattern: {error}") from error


@lru_cache(maxsize=65_536)
def without_return_type(symbol: str) -> str:
    """A C++ symbol without the return type that instances of templates are demangled with: ``at::Tensor f<int>``."""
    depth = start = 0
    for match in _TOKEN.finditer(symbol):
        found = match[0]
        if found in "<>":
            depth += 1 if found == "<" else -1
        elif depth == 0 and found == " ":
            start = match.end()
        elif depth == 0 and found in _NAME_ENDS:
            break
    return symbol[start:]


def _all_match(patterns: tuple[re.Pattern[str] | None, ...], texts: tuple[str, ...]) -> bool:
    return all(pattern is None or pattern.match(text) for pattern, text in zip(patterns, texts, strict=True))
