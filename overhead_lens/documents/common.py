"""What several documents are made of, and how one is filled and written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Struct

from overhead_lens.subject import Subject


@dataclass(frozen=True, slots=True)
class Rounded:
    """Annotation of a field that is rounded to so many digits; to a whole number for None."""

    digits: int | None


Interval = tuple[float, float]
Tenths = Annotated[float, Rounded(1)]
TenthsInterval = Annotated[Interval, Rounded(1)]


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of a document; its constructor rounds the fields that are ``Rounded``."""

    def __post_init__(self) -> None:
        for name, digits in _rounded_fields(type(self)).items():
            msgspec.structs.force_setattr(self, name, _rounded(getattr(self, name), digits))


class Document(Row, frozen=True, kw_only=True):
    """JSON that commands print and other programs read."""

    def to_json(self) -> str:
        """The text, one space for each level."""
        return json.dumps(msgspec.to_builtins(self), indent=1)


class Part(Row, frozen=True):
    """A named share of a category; the parts of a category sum to it."""

    name: str
    ns: float


class Frame(Row, frozen=True):
    """A function and its self time in a category, ns per call."""

    frame: str
    ns: float


class Category(Row, frozen=True):
    """A host category. ``ci95_ns`` is null where there is one recording alone; ``top`` are the costliest functions."""

    category: str
    ns: float
    ci95_ns: TenthsInterval | None
    share: Annotated[float, Rounded(5)]
    evidence: str
    parts: list[Part]
    top: list[Frame]


RowType = TypeVar("RowType", bound=Row)


def fill(kind: type[RowType], source: object, **others: Any) -> RowType:
    """A row from the attributes of ``source`` that are called like its fields, and from ``others``."""
    fields = {name: getattr(source, name) for name in kind.__struct_fields__ if hasattr(source, name)}
    return msgspec.convert({**fields, **others}, kind, from_attributes=True)


def json_subject(subject: Subject) -> Subject:
    """The subject with infinite and NaN parameters as text, which JSON cannot hold."""
    return replace(subject, params={name: _finite(value) for name, value in subject.params.items()})


def finite_interval(interval: Interval | None) -> tuple[float | None, float | None] | None:
    """An interval whose infinite ends are null."""
    if interval is None:
        return None
    low, high = (end if math.isfinite(end) else None for end in interval)
    return low, high


def _finite(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@cache
def _rounded_fields(kind: type[Row]) -> Mapping[str, int | None]:
    return {
        name: mark.digits
        for name, hint in get_type_hints(kind, include_extras=True).items()
        for option in (hint, *get_args(hint))
        for mark in getattr(option, "__metadata__", ())
        if isinstance(mark, Rounded)
    }


def _rounded(value: Any, digits: int | None) -> Any:
    if isinstance(value, tuple):
        return tuple(round(end, digits) for end in value)
    return round(value, digits) if isinstance(value, (int, float)) else value
