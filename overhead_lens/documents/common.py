"""What several documents are made of, and how one is filled and written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Struct

from overhead_lens.contract import Rounded, ShareOfTime, TenthsInterval
from overhead_lens.subject import Subject

Interval = tuple[float, float]


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of a document that no model is like."""


class Document(Row, frozen=True, kw_only=True):
    """JSON that commands print and other programs read."""

    def to_json(self) -> str:
        """The text, one space for each level."""
        plain = _plain(self)
        try:
            return msgspec.json.format(json.dumps(plain), indent=1)
        except msgspec.DecodeError:  # half of a character in a name; six times slower
            return json.dumps(plain, indent=1)


class Part(Row, frozen=True):
    """A named share of a category; the parts of a category sum to it."""

    name: str
    ns: float


class Frame(Row, frozen=True):
    """A function and its self time in a category, ns per call."""

    frame: str
    ns: float


class Category(Row, frozen=True):
    """A host category. ``ci95_ns`` is null if there is one recording alone; ``top`` are the costliest functions."""

    category: str
    ns: float
    ci95_ns: TenthsInterval | None
    share: ShareOfTime
    evidence: str
    parts: list[Part]
    top: list[Frame]


RowType = TypeVar("RowType", bound=Row)


def fill(kind: type[RowType], source: object, **others: Any) -> RowType:
    """A row from the attributes of ``source`` that are called like its fields, and from ``others``."""
    keys = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    values = {name: getattr(source, name) for name in keys if hasattr(source, name)} | others
    return msgspec.convert({keys[name]: value for name, value in values.items()}, kind, from_attributes=True)


def _finite(value: Any) -> Any:
    """Infinite and NaN parameters as text, which JSON cannot hold."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any, mark: Rounded | None = None) -> Any:
    """What JSON holds of a value: Structs and models by their fields, rounded as their annotations say."""
    if value is None or isinstance(value, (str, int, float)):
        return value if mark is None or value is None or isinstance(value, str) else round(float(value), mark.digits)
    if isinstance(value, Subject):
        value = replace(value, params={name: _finite(each) for name, each in value.params.items()})
    kind: type[Any] = type(value)
    if issubclass(kind, Struct) or is_dataclass(kind):
        items = ((key, getattr(value, name), its) for name, key, its in _fields(kind))
        return {key: _plain(each, its) for key, each, its in items if each is not UNSET}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each, mark) for each in value] if isinstance(value, (list, tuple)) else msgspec.to_builtins(value)


@cache
def _fields(kind: type[Any]) -> list[tuple[str, str, Rounded | None]]:
    """Name, key and rounding of each field."""
    names = kind.__struct_fields__ if issubclass(kind, Struct) else tuple(each.name for each in fields(kind))
    keys = kind.__struct_encode_fields__ if issubclass(kind, Struct) else names
    hints = get_type_hints(kind, include_extras=True)
    return [(name, key, _mark(hints[name])) for name, key in zip(names, keys, strict=True)]


def _mark(hint: Any) -> Rounded | None:
    marks = (mark for option in (hint, *get_args(hint)) for mark in getattr(option, "__metadata__", ()))
    return next((mark for mark in marks if isinstance(mark, Rounded)), None)
