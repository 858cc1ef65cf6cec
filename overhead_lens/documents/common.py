"""What several documents are made of, and how one is written."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
from msgspec import Struct

from overhead_lens.subject import Subject

Interval = tuple[float, float]


class Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """JSON that commands print and other programs read."""

    def to_json(self) -> str:
        """The text, one space for each level."""
        return json.dumps(msgspec.to_builtins(self), indent=1)


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A named share of a category; the parts of a category sum to it."""

    name: str
    ns: float


class Frame(Struct, frozen=True, forbid_unknown_fields=True):
    """A function and its self time in a category, ns per call."""

    frame: str
    ns: float


class Category(Struct, frozen=True, forbid_unknown_fields=True):
    """A host category. ``ci95_ns`` is null where there is one recording alone; ``top`` are the costliest functions."""

    category: str
    ns: float
    ci95_ns: Interval | None
    share: float
    evidence: str
    parts: list[Part]
    top: list[Frame]


class CountPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A named share of a category, instructions per call."""

    name: str
    count: int


class CountFrame(Struct, frozen=True, forbid_unknown_fields=True):
    """A function and its own instructions per call."""

    frame: str
    count: int


def json_subject(subject: Subject) -> Subject:
    """The subject with parameters that JSON can hold: infinities and NaN as text."""
    params = {name: finite(value) for name, value in subject.params.items()}
    return Subject(subject.kind, subject.name, subject.variant, params, subject.compile, subject.device)


def finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def finite_interval(interval: Interval | None) -> tuple[float | None, float | None] | None:
    """An interval whose infinite ends are null."""
    if interval is None:
        return None
    low, high = (each if math.isfinite(each) else None for each in interval)
    return low, high


def tenths(interval: Interval) -> Interval:
    """An interval rounded to a tenth."""
    return round(interval[0], 1), round(interval[1], 1)


def rounded(value: float | None, digits: int) -> float | None:
    """A number rounded, or null."""
    return None if value is None else round(float(value), digits)
