"""Makes, completes and reads the directory of a capture; ``files.py`` lists its files."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from overhead_lens.captures.files import DELTA, MARK, META, RANK
from overhead_lens.captures.model import CaptureMeta
from overhead_lens.captures.upgrade import capture_of_1
from overhead_lens.errors import Interrupted, MeasurementError, OverheadLensError, UsageError

Note = TypeVar("Note")
Meta = TypeVar("Meta", bound=Struct)


@dataclass(frozen=True, slots=True)
class Kind(Generic[Meta]):
    """A kind of stored directory.

    Attributes:
        upgrades: Conversions from earlier schemas.
    """

    noun: str
    schema: str
    meta: type[Meta]
    upgrades: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = field(default_factory=dict)

    def is_of(self, schema: object) -> bool:
        """Whether that is a current or earlier schema of this kind."""
        return schema == self.schema or schema in self.upgrades


CAPTURE = Kind("capture", "overhead-lens/capture/2", CaptureMeta, {"overhead-lens/capture/1": capture_of_1})


@dataclass(frozen=True, slots=True)
class Capture:
    """A complete capture: its directory and its ``meta.json``. The instruments read their own files."""

    path: Path
    meta: CaptureMeta

    def note(self, instrument: str, kind: type[Note]) -> Note | None:
        """An instrument's entry in ``meta.json``; None if it has none.

        Raises:
            UsageError: It is not of that type.
        """
        note = self.meta.instruments.get(instrument)
        if note is None:
            return None
        try:
            return msgspec.convert(note, kind)
        except (msgspec.ValidationError, OverheadLensError) as error:
            raise self.damaged(f"{META}: {_placed(str(error), f'instruments.{instrument}')}") from error

    def damaged(self, fault: object) -> UsageError:
        """The error for a damaged file of this capture."""
        return damaged("capture", self.path, fault)

    def existing(self, name: str) -> Path | None:
        """The path of an existing file; None for a missing one."""
        path = self.path / name
        return path if path.exists() else None


# Schemas of studies.
_OF_A_STUDY = re.compile(r"overhead-lens/(\w+)-capture/\d+")
_NAMES = {"advice": "advice", "process": "a watched process"}


@contextmanager
def recording_directory(output: Path | None, parent: Path, label: str) -> Iterator[Path]:
    """The directory to record into: ``output``, or a new one under ``parent``.

    It is removed after a ``UsageError``, after an error that left only hidden files in it, and if Ctrl-C left no capture.

    Raises:
        UsageError: ``output`` is not empty.
        MeasurementError: The directory, or a file in it, cannot be written.
    """
    place = output or parent
    made = [path for path in (place, *place.parents) if not path.exists()]
    if output is not None:
        folder = claim_directory(output)
    else:
        folder = new_directory(parent, label, datetime.now().astimezone())
        made = [folder, *made]
    try:
        try:
            yield folder
        except OSError as error:
            raise MeasurementError(cannot_write(folder, error)) from error
    except (OverheadLensError, Interrupted, KeyboardInterrupt) as error:
        with suppress(OSError):
            if _is_of_no_use(folder, error):
                empty(folder)
                for path in made:
                    path.rmdir()
        raise


def _is_of_no_use(folder: Path, error: BaseException) -> bool:
    if isinstance(error, OverheadLensError):
        # Logs say what failed.
        return isinstance(error, UsageError) or all(path.name.startswith(".") for path in folder.iterdir())
    return not any(folder.rglob(META))


def empty(folder: Path) -> None:
    """Remove everything in a directory; targets of links stay."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def new_directory(parent: Path, label: str, now: datetime) -> Path:
    """Make a new directory ``label-YYYYmmdd-HHMMSS``, numbered where two runs start together.

    Raises:
        MeasurementError: ``parent`` cannot be written.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", label).strip("-.") or "capture"
    stem = f"{safe}-{now:%Y%m%d-%H%M%S}"
    for attempt in range(1, 10_000):
        path = parent / (stem if attempt == 1 else f"{stem}-{attempt}")
        try:
            parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            if not parent.is_dir():
                break
            continue
        except OSError as error:
            raise MeasurementError(cannot_write(parent, error)) from error
        return path
    raise MeasurementError(f"cannot make a directory in {parent}; choose another place with --output")


def claim_directory(path: Path) -> Path:
    """Make the directory that the user named, or take it if it is empty.

    Raises:
        UsageError: It is not empty.
        MeasurementError: It cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise UsageError(f"{path} is not empty; nothing is overwritten, name another --output")
        # Of two runs with the same empty directory only one can create the mark.
        (path / MARK).open("x").close()
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{path} is taken; nothing is overwritten, name another --output") from error
    except OSError as error:
        raise MeasurementError(cannot_write(path, error)) from error
    return path


def release_directory(path: Path) -> None:
    """Remove the mark of ``claim_directory``."""
    (path / MARK).unlink(missing_ok=True)


def cannot_write(path: Path, error: OSError) -> str:
    """The message for an output directory that cannot be written."""
    return f"cannot write to {path}: {error.strerror or error}; choose another place with --output"


def write_meta(path: Path, kind: Kind[Meta], meta: Meta) -> None:
    """Write ``meta.json`` atomically, which completes the directory."""
    for log in path.glob("*.log"):
        if log.stat().st_size == 0:
            log.unlink()
    release_directory(path)
    partial = path / f".{META}.partial"
    document = {"schema": kind.schema, **msgspec.to_builtins(meta)}
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path / META)


def read_capture(path: Path) -> Capture:
    """Open a complete capture.

    Raises:
        UsageError: It is not a complete, sound capture of a known schema.
    """
    study = study_of(path)
    if study is not None:
        name = _NAMES.get(study, f"a {study}")
        raise UsageError(f"{path} is {name}, not the capture of a call; `overhead-lens report` shows it")
    return Capture(path, read_meta(path, CAPTURE))


def read_meta(path: Path, kind: Kind[Meta]) -> Meta:
    """``meta.json`` of a complete directory of that kind.

    Raises:
        UsageError: It is of another kind or schema, interrupted or damaged.
    """
    if not os.path.isdir(path):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        raise UsageError(f"no {kind.noun} {path}")
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path} {_without_meta(path, kind.noun)}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(kind.noun, path, f"{META}: {error}") from error
    schema = meta.get("schema") if isinstance(meta, dict) else None
    if not isinstance(schema, str) or not kind.is_of(schema):
        raise UsageError(f"the {kind.noun} {path} has schema {schema!r}; this version reads {kind.schema!r}")
    try:
        return msgspec.convert(kind.upgrades[schema](meta) if schema in kind.upgrades else meta, kind.meta)
    except (msgspec.ValidationError, OverheadLensError) as error:
        raise damaged(kind.noun, path, f"{META}: {error}") from error


def _without_meta(path: Path, noun: str) -> str:
    """What a directory without ``meta.json`` is: some hold directories of their own."""
    held = sorted(file.parent for file in path.glob(f"*/{META}"))
    for mark, of in ((DELTA, "captures of a comparison"), (f"{RANK}*", "ranks of a job")):
        if held and any(path.glob(mark)):
            return f"holds the {of}: name one of them, {held[0]}"
    return f"is not a complete {noun}: it has no {META} (was it interrupted?)"


def damaged(noun: str, path: Path, fault: object) -> UsageError:
    """The error for a damaged directory; ``fault`` names the file and field."""
    return UsageError(f"the {noun} {path} is damaged: {(str(fault).splitlines() or [''])[0]}")


def fields_of(path: Path) -> Mapping[str, Any]:
    """``meta.json`` of a directory of any kind; empty for an unreadable one."""
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return meta if isinstance(meta, dict) else {}


def study_of(path: Path) -> str | None:
    """The name of the study that wrote a directory; None for the capture of a call, and for other directories."""
    study = _OF_A_STUDY.fullmatch(str(fields_of(path).get("schema")))
    return None if study is None else study[1]


def _placed(message: str, place: str) -> str:
    """Msgspec's message with the field's path from the top of the file."""
    return message.replace("`$", f"`$.{place}") if "`$" in message else f"{message} - at `$.{place}`"
