"""What a result looks like: its JSON and its text, by the result's type. A new kind of result is a row here."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from rich.console import Console

from overhead_lens.report.outline import Outline
from overhead_lens.taxonomy.classifier import Classifier, default_classifier

_WIDTH = 120


@dataclass(frozen=True, slots=True)
class Form:
    """The forms of a type of result, as ``module:function`` from this package on; loaded when one is used.

    Attributes:
        document: Makes the JSON document of a result.
        outline: Makes the ``Outline`` of a result, which is its text, page, notebook and Markdown.
        table: Makes the pandas table of a result; empty for those that the Python API does not give.
    """

    document: str
    outline: str
    table: str = ""


_FORMS = {
    "budget.model.Breakdown": Form(
        "documents.breakdown:breakdown_document",
        table="report.tables:host_table",
        outline="report.outlines.breakdown:breakdown_outline",
    ),
    "comparison.model.Delta": Form(
        "documents.delta:delta_document",
        table="report.tables:delta_table",
        outline="report.outlines.delta:delta_outline",
    ),
    "studies.ladder.analysis.Ladder": Form(
        "documents.ladder:ladder_document",
        table="report.tables:ladder_table",
        outline="report.outlines.ladder:ladder_outline",
    ),
    "studies.advise.analysis.Advice": Form(
        "documents.advice:advice_document",
        table="report.tables:advice_table",
        outline="report.outlines.advice:advice_outline",
    ),
    "studies.sweep.analysis.Sweep": Form(
        "documents.sweep:sweep_document",
        table="report.tables:sweep_table",
        outline="report.outlines.sweep:sweep_outline",
    ),
    "studies.run.analysis.RunBudget": Form(
        "documents.run:run_document",
        table="report.tables:host_table",
        outline="report.outlines.run:run_outline",
    ),
    "studies.run.delta.RunDelta": Form(
        "documents.steps:steps_document", outline="report.outlines.delta:run_delta_outline"
    ),
    "studies.run.missed.EndToEnd": Form(
        "documents.missed:missed_document", outline="report.outlines.run:end_to_end_outline"
    ),
    "studies.run.job.RunJob": Form("documents.ranks:ranks_document", outline="report.outlines.run:job_outline"),
    "studies.attach.analysis.ProcessBudget": Form(
        "documents.process:process_document",
        table="report.tables:process_table",
        outline="report.outlines.process:process_outline",
    ),
    "studies.attach.delta.ProcessDelta": Form(
        "documents.process:threads_document", outline="report.outlines.process:process_delta_outline"
    ),
    "studies.history.analysis.History": Form(
        "documents.history:history_document", outline="report.outlines.history:history_outline"
    ),
    "traces.model.TraceAnalysis": Form(
        "documents.analysis:trace_document",
        table="report.tables:analysis_table",
        outline="report.outlines.trace:trace_outline",
    ),
    "traces.job.ranks.Job": Form("documents.analysis:job_document", outline="report.outlines.ranks:job_outline"),
    "traces.structure.model.StructureDelta": Form(
        "documents.structure:structure_document", outline="report.outlines.structure:structure_outline"
    ),
    "recorder.calibrate.Calibrated": Form(
        "documents.calibration:calibration_document",
        outline="report.outlines.calibration:calibration_outline",
    ),
    "studies.check.outcome.TimeOutcome": Form(
        "documents.delta:checked_document", outline="report.outlines.check:outcome_outline"
    ),
    "studies.check.outcome.CountOutcome": Form(
        "documents.delta:counts_document", outline="report.outlines.check:outcome_outline"
    ),
}


def to_json(result: object) -> str:
    """The JSON text of a result."""
    return str(_load(_form(result).document)(result).to_json())


def print_text(console: Console, result: object, *, whole: bool = False) -> None:
    """Print a result for people; ``whole``: also what else only pages show."""
    from overhead_lens.report.printers.terminal import print_outline

    print_outline(console, outline_of(result), whole=whole)


def outline_of(result: object) -> Outline:
    """What a report says of a result."""
    outline: Outline = _load(_form(result).outline)(result)
    return outline


def to_markdown(result: object) -> str:
    """A result as Markdown."""
    from overhead_lens.report.printers.markdown import to_markdown as printed

    return printed(outline_of(result))


def to_pandas(result: object) -> pd.DataFrame:
    """The table of a result."""
    table: pd.DataFrame = _load(_form(result).table)(result)
    return table


def to_html(result: object, classifier: Classifier | None = None) -> str:
    """A result as one HTML file that holds everything.

    Args:
        result: Of a type with a form.
        classifier: The rules by which it was made; the built-in ones where None.
    """
    from overhead_lens.report.printers.page import page_of

    return page_of(outline_of(result), classifier or default_classifier())


def to_notebook(result: object) -> str:
    """A result in a notebook: HTML of its own."""
    from overhead_lens.report.printers.notebook import notebook_html

    return notebook_html(outline_of(result))


def to_text(result: object, *, whole: bool = False) -> str:
    """What ``print_text`` prints, without colors."""
    file = io.StringIO()
    console = Console(file=file, width=_WIDTH, highlight=False, markup=False, emoji=False, force_jupyter=False)
    print_text(console, result, whole=whole)
    return file.getvalue()


def _form(result: object) -> Form:
    kind = type(result)
    return _FORMS[f"{kind.__module__}.{kind.__qualname__}".removeprefix("overhead_lens.")]


def _load(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(f"overhead_lens.{module}"), name)
    return function
