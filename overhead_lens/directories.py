"""The kinds of directories that commands read: what is done with one, by its kind. A new kind is a row here.

What a result looks like is a row of ``report/forms.py``, by its type.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overhead_lens.captures.directory import read_capture, study_of
from overhead_lens.captures.files import DELTA, META, RANK
from overhead_lens.errors import UsageError
from overhead_lens.taxonomy.classifier import Classifier

CALL, COMPARISON, JOB, PROCESS, RUN = "call", "comparison", "job", "process", "run"


@dataclass(frozen=True, slots=True)
class Directory:
    """Operations on a kind of directory, as ``module:function`` from this package on; loaded when it is used.

    Attributes:
        load: Makes the result of a path, by the rules of a classifier where ``by_rules``.
        compare: Makes the difference of two results for a margin; empty where two of the kind do not compare.
        export: Writes a path into a file by a classifier's rules; ``{}`` is the format, ``stacks`` for those of ``_STACKS``.
            Empty if there is none.
    """

    load: str
    compare: str = ""
    export: str = ""
    by_rules: bool = True


_STACKS = {"collapsed": "export.speedscope:write_collapsed", "speedscope": "export.speedscope:write_profiles"}
_KINDS = {
    CALL: Directory("stored:breakdown_of", export="export.capture:write_call_{}"),
    COMPARISON: Directory("stored:comparison_of"),
    JOB: Directory("studies.run.job:job_of"),
    RUN: Directory("studies.run.analysis:run_budget_of", "studies.run.delta:compare_runs", "export.run:write_run_{}"),
    PROCESS: Directory(
        "studies.attach.analysis:process_of",
        "studies.attach.delta:compare_processes",
        "export.process:write_process_{}",
    ),
    "advice": Directory("studies.advise.analysis:advice_of"),
    "ladder": Directory("studies.ladder.analysis:ladder_of", by_rules=False),
    "sweep": Directory("studies.sweep.analysis:sweep_of", by_rules=False),
}


def kind_of(path: Path) -> str:
    """The kind of a directory; what is of no known kind counts as the capture of a call, whose reader says what is wrong."""
    if (path / DELTA).is_file():
        return COMPARISON
    study = study_of(path)
    if study is None and not (path / META).exists() and any(study_of(rank) == RUN for rank in path.glob(f"{RANK}*")):
        return JOB
    return study if study in _KINDS else CALL


def _checked_kind(path: Path) -> Directory:
    """The row of a directory's kind. A call's capture is checked before the analysis is imported.

    Raises:
        UsageError: It is a file, or not a complete, sound capture.
    """
    if path.is_file():
        raise UsageError(f"{path} is a file, not a capture directory; `analyze` reads traces")
    kind = kind_of(path)
    if kind == CALL:
        read_capture(path)
    return _KINDS[kind]


def load_directory(path: Path, classifier: Classifier) -> Any:
    """The result that is stored in a directory.

    Raises:
        UsageError: It holds none, or a damaged one.
    """
    kind = _checked_kind(path)
    return _load(kind.load)(path, *([classifier] if kind.by_rules else []))


def uses_rules(path: Path) -> bool:
    """Whether a classifier's rules change what ``load_directory`` returns."""
    return _KINDS[kind_of(path)].by_rules


def checks_context(path: Path) -> bool:
    """Whether ``compare_directories`` refuses directories of this kind from different machines or versions."""
    return not _KINDS[kind_of(path)].compare


def compare_directories(base: Path, new: Path, classifier: Classifier, margin_share: float, *, force: bool) -> Any:
    """The difference of two directories of one kind; ``force`` compares captures of different machines or versions.

    Raises:
        UsageError: They are of different kinds, cannot be compared, or one is damaged.
    """
    kinds = {kind_of(base), kind_of(new)}
    if len(kinds) > 1 and kinds & {PROCESS, RUN}:
        raise UsageError(
            "a watched process compares with a watched process, a run with a run, a capture with a capture"
        )
    for path in (base, new):
        _checked_kind(path)
    kind = _KINDS[min(kinds)]
    if not kind.compare:
        return _load("stored:compare_captures")(base, new, classifier, margin_share, force=force)
    return _load(kind.compare)(load_directory(base, classifier), load_directory(new, classifier), margin_share)


def export_directory(path: Path, target: Path, form: str, classifier: Classifier) -> None:
    """Write a directory into a file as ``chrome``, ``collapsed``, ``perfetto`` or ``speedscope``.

    Raises:
        UsageError: It holds nothing to write in that format, is damaged, or the file cannot be written.
    """
    writer = _checked_kind(path).export or _KINDS[CALL].export
    if form in _STACKS:
        _load(writer.format("stacks"))(path, target, classifier, _load(_STACKS[form]))
    else:
        _load(writer.format(form))(path, target, classifier)


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"overhead_lens.{module}"), name)
