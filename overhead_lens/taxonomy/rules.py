"""Reads the rules that attribute frames and trace events to categories from ``rules.toml``."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from overhead_lens.errors import UsageError
from overhead_lens.stack import StackFrame
from overhead_lens.taxonomy.categories import HOST_CATEGORIES, OPTIONAL_PARTS, PARTS

NEUTRAL = "neutral"

RULES_FILE = Path(__file__).with_name("rules.toml")

# A C++ symbol's tokens; an argument list, a lambda or an operator ends the part with a return type.
_NAME_ENDS = ("operator", "(", "{")
_TOKEN = re.compile(r"\boperator\b|\(anonymous namespace\)|->|[<>({]| (?!&)")

_PATTERNS = ("native", "module", "file", "function", "event", "event_category")
_CALLERS = {*HOST_CATEGORIES, *(f"{category}/{part}" for category, parts in PARTS.items() for part in parts)}
_KEYS = {"category", "part", *_PATTERNS, "under", "calls", "scope", "shown", "mostly_own", "source"}


@dataclass(frozen=True, slots=True)
class Attribution:
    """The category and part that a frame's time belongs to."""

    category: str
    part: str | None = None

    def __str__(self) -> str:
        return self.category if self.part is None else f"{self.category}/{self.part}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of ``rules.toml``.

    Attributes:
        attribution: Its category and part; ``neutral`` inherits from the nearest attributed ancestor.
        native: Pattern of a native symbol without its return type, matched from its start.
        module: Pattern of a native frame's module, matched from its start.
        file: Pattern searched in a Python frame's file.
        function: Pattern of a Python frame's function, matched from its start.
        event: Pattern of a trace event's name, matched from its start.
        event_category: Pattern of a trace event's category, matched whole.
        under: Categories of the caller that it applies to, or ``category/part``; empty for any.
        calls: Category for which it calls others, as ``under`` sees it beside its own; empty for none.
        scope: Whether it keeps everything below it.
        shown: Whether its frames are shown.
        mostly_own: Whether it applies only to functions that spend most of their time in themselves.
        source: The file in PyTorch (or elsewhere) that justifies it.
    """

    attribution: Attribution
    native: re.Pattern[str] | None
    module: re.Pattern[str] | None
    file: re.Pattern[str] | None
    function: re.Pattern[str] | None
    event: re.Pattern[str] | None
    event_category: re.Pattern[str] | None
    under: frozenset[str]
    calls: str
    scope: bool
    shown: bool
    mostly_own: bool
    source: str

    def fits_frame(self, frame: StackFrame, callers: Collection[str]) -> bool:
        """Whether a rule for such frames, native or Python, fits ``frame`` below a caller of the categories ``callers``."""
        if self.under and self.under.isdisjoint(callers):
            return False
        if frame.native:
            # Without a module it is not a symbol, but a reader's own text.
            symbol = without_return_type(frame.function) if frame.location else frame.function
            by_symbol = self.native is None or self.native.match(symbol) is not None
            return by_symbol and (self.module is None or self.module.match(frame.location) is not None)
        in_file = self.file is None or self.file.search(frame.location) is not None
        return in_file and (self.function is None or self.function.match(frame.function) is not None)

    def fits_event(self, name: str, event_category: str) -> bool:
        """Whether a rule for events fits a trace event."""
        by_name = self.event is None or self.event.match(name) is not None
        return by_name and (self.event_category is None or self.event_category.fullmatch(event_category) is not None)


def load_rules(path: Path = RULES_FILE) -> tuple[Rule, ...]:
    """Read a rules file.

    Raises:
        UsageError: Not TOML, an unknown key, category or part, or a bad pattern; the message names the rule.
    """
    try:
        document = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read rules {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    entries = document.get("rule")
    if not isinstance(entries, list) or set(document) != {"rule"}:
        raise UsageError(f"{path} must hold [[rule]] entries and nothing else")
    return tuple(_parse_rule(entry, f"{path.name}, rule {number}") for number, entry in enumerate(entries, 1))


def all_rules(extra: Path | None = None) -> tuple[Rule, ...]:
    """The rules in ``extra``, then the built-in ones; raises as ``load_rules`` does."""
    return (*(load_rules(extra) if extra else ()), *_built_in())


_built_in = cache(load_rules)


def _parse_rule(entry: dict[str, Any], where: str) -> Rule:
    unknown = set(entry) - _KEYS
    if unknown:
        raise UsageError(f"{where}: unknown key {min(unknown)!r}")
    category, part = entry.get("category"), entry.get("part")
    if category not in (*HOST_CATEGORIES, NEUTRAL):
        raise UsageError(f"{where}: no category {category!r}; it is one of {', '.join(HOST_CATEGORIES)}, {NEUTRAL}")
    missing = part is None and category in PARTS and category not in OPTIONAL_PARTS
    if missing or (part is not None and part not in PARTS.get(category, ())):
        raise UsageError(f"{where}: {category} needs a part of {PARTS.get(category, ('none',))}, not {part!r}")
    if not entry.get("source"):
        raise UsageError(f"{where}: say in 'source' which file justifies it")
    under = frozenset(entry.get("under", ()))
    calls = entry.get("calls", "")
    for key, names, known in (("under", under, _CALLERS), ("calls", {calls} - {""}, set(HOST_CATEGORIES))):
        if not names <= known:
            raise UsageError(f"{where}: {key!r} names an unknown category")
    return Rule(
        Attribution(category, part),
        **{name: _pattern(entry.get(name), f"{where}, {name}") for name in _PATTERNS},
        under=under,
        calls=calls,
        scope=bool(entry.get("scope")),
        shown=bool(entry.get("shown", category != NEUTRAL)),
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
    """A C++ symbol without the return type of a demangled template instance: ``at::Tensor f<int>``."""
    depth = start = 0
    for match in _TOKEN.finditer(symbol):
        text = match[0]
        if text in "<>":
            depth += 1 if text == "<" else -1
        elif depth == 0 and text == " ":
            start = match.end()
        elif depth == 0 and text in _NAME_ENDS:
            break
    return symbol[start:]
