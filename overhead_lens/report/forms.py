"""What a result looks like: its JSON and its text, by the result's type. A new kind of result is a row here."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console

from overhead_lens.report.outline import Outline
from overhead_lens.taxonomy.classifier import Classifier, default_classifier

if TYPE_CHECKING:
    import pandas as pd

    from overhead_lens.studies.check.limits import Outcome

_WIDTH = 120

_FORMS: Mapping[str, tuple[str, ...]] = {
    "budget.model.Breakdown": ("breakdown", "breakdown", "tables:host"),
    "comparison.model.Delta": ("delta", "delta", "tables:delta"),
    "studies.ladder.analysis.Ladder": ("ladder", "ladder", "tables:ladder"),
    "studies.advise.analysis.Advice": ("advice", "advice", "tables:advice"),
    "studies.sweep.analysis.Sweep": ("sweep", "sweep", "tables:sweep"),
    "studies.run.analysis.RunBudget": ("run", "run", "tables:host"),
    "studies.run.delta.RunDelta": ("run:steps", "delta:run_delta"),
    "studies.run.missed.EndToEnd": ("run:missed", "run:end_to_end"),
    "studies.run.job.RunJob": ("run:ranks", "run:job", "tables:job"),
    "studies.attach.analysis.ProcessBudget": ("process", "process", "tables:process"),
    "studies.attach.delta.ProcessDelta": ("process:threads", "process:process_delta"),
    "studies.history.analysis.History": ("history", "history"),
    "traces.model.TraceAnalysis": ("analysis:trace", "trace", "tables:analysis"),
    "traces.job.ranks.Job": ("analysis:job", "ranks:job"),
    "traces.structure.model.StructureDelta": ("analysis:structure", "structure"),
    "recorder.calibrate.Calibrated": ("calibration", "calibration"),
    "studies.check.limits.TimeOutcome": ("delta:checked", "delta:outcome"),
    "studies.check.limits.CountOutcome": ("delta:counts", "delta:outcome"),
}
"""By type: the document, the outline and, if the Python API gives the result, the table. ``MODULE:NAME`` is ``NAME_document`` in
``documents/MODULE.py``, ``NAME_outline`` in ``outlines/MODULE.py``, ``NAME_table`` in ``report/MODULE.py``; one name is both."""


def to_json(result: object) -> str:
    """The JSON text of a result."""
    return str(_made(result, 0, "documents.{}:{}_document").to_json())


def print_text(console: Console, result: object, *, whole: bool = False) -> None:
    """Print a result for people; ``whole``: also what else only pages show."""
    from overhead_lens.report.printers.terminal import print_outline

    print_outline(console, outline_of(result), whole=whole)


def outline_of(result: object) -> Outline:
    """What a report says of a result."""
    outline: Outline = _made(result, 1, "report.outlines.{}:{}_outline")
    return outline


def to_markdown(result: object) -> str:
    """A result as Markdown."""
    from overhead_lens.report.printers.markdown import to_markdown as printed

    return printed(outline_of(result))


def to_pandas(result: object) -> pd.DataFrame:
    """The table of a result."""
    table: pd.DataFrame = _made(result, 2, "report.{}:{}_table")
    return table


def to_html(result: object, classifier: Classifier | None = None) -> str:
    """A result as one HTML file that holds everything; ``classifier`` has the rules that made it, None for the built-in ones."""
    from overhead_lens.report.printers.page import page_of

    return page_of(outline_of(result), classifier or default_classifier())


def to_notebook(result: object) -> str:
    """A result in a notebook: HTML of its own."""
    from overhead_lens.report.printers.notebook import notebook_html

    return notebook_html(outline_of(result))


def to_junit(outcome: Outcome) -> str:
    """A gate's outcome as JUnit XML: one test case per limit, and one for the verdict where there is no limit."""
    from xml.etree import ElementTree as ET

    from overhead_lens.report.text.plain import plain
    from overhead_lens.studies.check.limits import BROKEN

    name, sentence = plain(outcome.name), outcome.delta.sentence
    cases = [(finding.limit.name, str(finding), finding.state == BROKEN) for finding in outcome.findings]
    cases = cases or [("verdict", plain(sentence), outcome.regressed)]
    failures = sum(failed for _, _, failed in cases)
    suite = ET.Element("testsuite", name="overhead-lens check", tests=str(len(cases)), failures=str(failures))
    for title, text, failed in cases:
        case = ET.SubElement(suite, "testcase", classname=f"overhead-lens.{name}", name=title)
        if failed:
            ET.SubElement(case, "failure", message=text).text = plain(sentence)
        else:
            ET.SubElement(case, "system-out").text = text
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def to_text(result: object, *, whole: bool = False) -> str:
    """What ``print_text`` prints, without colors."""
    file = io.StringIO()
    console = Console(file=file, width=_WIDTH, highlight=False, markup=False, emoji=False, force_jupyter=False)
    print_text(console, result, whole=whole)
    return file.getvalue()


def _made(result: object, which: int, place: str) -> Any:
    """What the function at ``place`` makes of a result; loaded when it is used."""
    kind = type(result)
    row = _FORMS[f"{kind.__module__}.{kind.__qualname__}".removeprefix("overhead_lens.")]
    named, _, name = row[which].partition(":")
    module, _, function = place.format(named, name or named).partition(":")
    return getattr(importlib.import_module(f"overhead_lens.{module}"), function)(result)
