"""``overhead-lens history``: how captures changed over time, and which commit moved them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from overhead_lens.errors import UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import argument, option

if TYPE_CHECKING:
    from overhead_lens.captures.collection import Skipped
    from overhead_lens.machine.request import Listener
    from overhead_lens.studies.history.analysis import History, Point
    from overhead_lens.taxonomy.classifier import Classifier


def history(
    folder: Annotated[Path, argument("DIR", "Directory with captures at any depth.")],
    rules: given.Rules = None,
    html: given.Html = None,
    json_: Annotated[bool, option("--json", "history")] = False,
    force: given.Force = False,
    quiet: given.Quiet = False,
) -> None:
    """Show how captures changed over time, and between which commits."""
    from overhead_lens.terminal.output import Format, show
    from overhead_lens.terminal.progress import progress

    with progress(quiet=quiet) as listener:
        result = read(folder, listener, rules)
    show(result, Format(json_, html, force=force))


def read(folder: Path, listener: Listener, rules: Path | None = None) -> History:
    """The history of the captures below ``folder``, analyzed by the built-in rules and those of a file.

    Raises:
        UsageError: It is not a directory, or holds no capture that can be read.
    """
    from overhead_lens.captures.collection import find_captures
    from overhead_lens.studies.history.analysis import make_history

    if not folder.is_dir():
        raise UsageError(f"no directory {folder}")
    captures, skipped = find_captures(folder)
    points, damaged, warnings = _points(captures, listener, rules)
    skipped += damaged
    if not points:
        why = f"; {len(skipped)} skipped, the first is {skipped[0].path}: {skipped[0].reason}" if skipped else ""
        raise UsageError(f"no captures below {folder}{why}")
    return make_history(str(folder), points, skipped, warnings)


def _points(
    captures: Sequence[Path], listener: Listener, rules: Path | None
) -> tuple[list[Point], list[Skipped], list[str]]:
    """Points of the captures, those that cannot be read, and warnings; analyses are taken from the cache or added to it."""
    from overhead_lens.captures.collection import Skipped
    from overhead_lens.studies.history import store as summary_store
    from overhead_lens.studies.history.analysis import point_of_text
    from overhead_lens.taxonomy.classifier import default_classifier

    classifier = default_classifier(rules)
    own_rules = b"" if rules is None else rules.read_bytes()
    summaries, added = summary_store.load(), {}
    points, damaged = [], []
    listener.begin(len(captures))
    for path in captures:
        listener.step(f"reading {path.name}")
        try:
            key = summary_store.key_of(path, own_rules)
            if key not in summaries:
                summaries[key] = added[key] = _analyzed(path, classifier)
            points.append(point_of_text(summaries[key], str(path)))
        except Exception as error:
            # One capture of a thousand, of whatever origin, never takes the others with it.
            damaged.append(Skipped(str(path), "damaged", " ".join(f"{error or type(error).__name__}".split())))
    refusal = summary_store.save(summaries) if added else None
    return points, damaged, [refusal] if refusal else []


def _analyzed(path: Path, classifier: Classifier) -> str:
    from overhead_lens.captures.directory import read_capture
    from overhead_lens.stored import budget_of
    from overhead_lens.studies.history.analysis import text_of

    budget = budget_of(path, classifier)
    return text_of(read_capture(path).meta, budget, float(budget.blocks["reference_ns"].median()))
