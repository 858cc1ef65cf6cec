"""Trace files for tests: events as text, in Kineto's own layout or compact."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def event(
    name: str = "op", cat: str = "cpu_op", ts: Any = 1, dur: Any = 1, pid: Any = 1, tid: Any = 1, **more: Any
) -> dict:
    """A complete event; ``more`` are its arguments, spaces of their names written as ``__``."""
    entry = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {**entry, "args": {key.replace("__", " "): value for key, value in more.items()}} if more else entry


class Number(float):
    """A number that is written as the given text."""

    def __new__(cls, text: str) -> Number:
        made = super().__new__(cls, "0")
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text


def as_json(value: Any) -> str:
    """JSON in which a ``Number`` stands as its text."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {as_json(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_json, value)) + "]"
    return json.dumps(value)


def pretty(entry: dict) -> str:
    """An event as Kineto's exporter lays it out."""
    head = {key: value for key, value in entry.items() if key not in ("ts", "dur", "args")}
    lines = [as_json(head)[1:-1]]
    lines += [as_json({key: entry[key] for key in ("ts", "dur") if key in entry})[1:-1]] if "ts" in entry else []
    if "args" in entry:
        arguments = entry["args"]
        inner = f"{{\n      {as_json(arguments)[1:-1]}\n    }}" if isinstance(arguments, dict) else as_json(arguments)
        lines.append(f'"args": {inner}')
    return "  {\n    " + ",\n    ".join(lines) + "\n  }"


def document(entries: Sequence[dict | str], *, compact: bool = False, **beside: Any) -> str:
    """A whole trace; an entry that is text already stands as it is."""
    write = as_json if compact else pretty
    texts = [entry if isinstance(entry, str) else write(entry) for entry in entries]
    head = "".join(f"{json.dumps(key)}: {as_json(value)}, " for key, value in {"schemaVersion": 1, **beside}.items())
    joined = (",".join if compact else ",\n".join)(texts)
    return f'{{{head}"traceEvents": [{joined}], "traceName": "t.json"}}'


def written(folder: Path, text: str | bytes, name: str = "t.json", *, packed: bool | None = None) -> Path:
    """The text in a file, gzipped where its name says so or ``packed``."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    path = folder / name
    path.write_bytes(gzip.compress(data) if packed or (packed is None and name.endswith(".gz")) else data)
    return path
