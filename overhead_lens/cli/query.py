"""``overhead-lens analyze --query``: SQL over traces."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from overhead_lens.errors import UsageError


def show_query(sql: str, paths: Sequence[Path], rules: Path | None, *, as_json: bool) -> None:
    """Print the rows of a query."""
    from overhead_lens.analysis.trace_analysis import Analyzer
    from overhead_lens.categories import default_classifier
    from overhead_lens.cli.present import make_console
    from overhead_lens.export.query import Analyzed, run_query
    from overhead_lens.report.plain import plain
    from overhead_lens.trace.kineto import read_trace

    if not sql.strip():
        raise UsageError(
            "--query needs SQL, for example: select name, sum(dur_ns) from kernels group by 1 order by 2 desc"
        )
    classifier = default_classifier(rules)
    analyzed = []
    for path in paths:
        trace = read_trace(path)
        analyzer = Analyzer(trace, classifier)
        analyzed.append(Analyzed(trace, analyzer.analysis(), analyzer.pieces()))
    answer = run_query(sql, analyzed)
    if as_json:
        print(json.dumps([dict(zip(answer.columns, row, strict=True)) for row in answer.rows], indent=1))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    numeric = [
        all(isinstance(row[at], (int, float, type(None))) for row in answer.rows) for at in range(len(answer.columns))
    ]
    for name, right in zip(answer.columns, numeric, strict=True):
        table.add_column(Text(plain(name)), justify="right" if right else "left", overflow="fold")
    for row in answer.rows:
        table.add_row(*(Text("" if value is None else plain(str(value))) for value in row))
    make_console().print(table)
