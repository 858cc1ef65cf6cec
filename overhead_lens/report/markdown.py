"""Results as one Markdown table, for the summary of a CI job or a comment."""

from __future__ import annotations

from overhead_lens.report.printers.markdown import escaped as cell
from overhead_lens.report.text import advice as told
from overhead_lens.report.text.plain import plain
from overhead_lens.studies.advise.analysis import Advice


def advice_markdown(advice: Advice) -> str:
    """Advice: the answer, a row for each remedy that was measured, how those that help are done."""
    measured = [each for each in advice.remedies if each.wall is not None]
    heads, rows = told.remedy_cells(measured)
    hows = [_code(each.how) if each.helps else "" for each in measured]
    lines = [f"### {cell(told.title(advice))}", "", cell(advice.sentence), ""]
    lines += [f"| {' | '.join((*heads, 'how'))} |", f"|{'---|' * (len(heads) + 1)}"]
    lines += [f"| {' | '.join((*map(cell, row), how))} |" for row, how in zip(rows, hows, strict=True)]
    if advice.together is not None:
        lines += ["", f"**{cell(told.together_line(advice.together))}**"]
    lines += ["", *(f"- {cell(warning)}" for warning in advice.warnings)]
    return "\n".join(lines).rstrip() + "\n"


def _code(text: str) -> str:
    """A line of code in a cell; a pipe would end the cell even in code."""
    return f"`{plain(text).replace('`', chr(39)).replace('|', chr(92) + '|')}`" if text else ""
