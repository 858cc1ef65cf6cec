"""What changed between two exported traces, for ``analyze --diff`` and ``diff``."""

from __future__ import annotations

import json
from pathlib import Path


def show_structure(base: Path, new: Path, rules: Path | None, *, as_json: bool) -> None:
    """Print which operators, kernels and launches came, went or changed."""
    from overhead_lens.analysis.trace_analysis import analyze_trace
    from overhead_lens.categories import default_classifier
    from overhead_lens.compare.structure import compare_structure
    from overhead_lens.trace.kineto import read_trace

    classifier = default_classifier(rules)
    before, after = read_trace(base), read_trace(new)
    delta = compare_structure(before, after, analyze_trace(before, classifier), analyze_trace(after, classifier))
    if as_json:
        from overhead_lens.report.structure_json import structure_document

        print(json.dumps(structure_document(delta), indent=1))
        return
    from overhead_lens.cli.present import make_console
    from overhead_lens.report.structure_text import print_structure

    print_structure(make_console(), delta)
