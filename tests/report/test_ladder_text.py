"""The report and the JSON of a drawn ladder, letter by letter; a mismatch leaves a `.got` beside the golden file."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from overhead_lens.documents.ladder import ladder_document
from overhead_lens.report.forms import print_text
from overhead_lens.studies.ladder.analysis import RUNGS, Ladder, make_ladder
from overhead_lens.subject import Subject
from tests.documents import validated
from tests.drawn.ladders import META, frame, typed
from tests.report.goldens import expect

HOSTILE = "[red]$x^{\\frac{1}$[/red]\n\x1b[31m<b>&$"
TIMES = (
    2_500,
    13_000,
    11_500,
    12_900,
    6_000,
    1_200,
    600,
    80,
    610,
    14_200,
    12_700,
    12_800,
    28_000,
    13_000,
    2_300,
    3_400,
)


def made(faults: int = 0) -> Ladder:
    """Every rung but the last, two processes that differ by 10 %."""
    rungs = {name: [float(ns), 1.1 * ns] for name, ns in zip(RUNGS, TIMES, strict=False)}
    meta = {
        **META,
        "names": list(RUNGS),
        "reasons": {"eager_warm_heap": "this C library has no mallopt that keeps freed memory"},
    }
    return make_ladder(typed(meta), frame(rungs, faults), "traces/ladder-drawn")


def printed(ladder: Ladder, width: int = 132) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False, color_system=None)
    print_text(console, ladder)
    text: str = console.file.getvalue()
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def test_text() -> None:
    expect("ladder.txt", printed(made()))


def test_json() -> None:
    document = validated(ladder_document(made()).to_json())
    expect("ladder.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    assert sum(layer["ns"] for layer in document["layers"]) == round(document["rungs"][1]["ns"])


def test_faults_are_a_column_only_where_there_are_any() -> None:
    header = next(line for line in printed(made(faults=12)).splitlines() if line.startswith("rung "))
    assert header.split()[-1] == "faults"
    assert "faults" not in printed(made())


def test_nothing_is_cut_off() -> None:
    assert "…" not in printed(made(), width=160)


def hostile() -> Ladder:
    """Names that a terminal or rich would obey."""
    ladder = made()
    rungs = tuple(replace(rung, reason=HOSTILE) if rung.reason else rung for rung in ladder.rungs)
    return replace(
        ladder,
        subject=Subject("scenario", HOSTILE, HOSTILE, {HOSTILE: HOSTILE}),
        directory=HOSTILE,
        warnings=(HOSTILE,),
        rungs=rungs,
    )


def test_hostile_names_are_printed_and_never_obeyed() -> None:
    text = printed(hostile(), width=1_000)
    escaped = "[red]$x^{\\frac{1}$[/red]\\n\\x1b[31m<b>&$"
    assert text.splitlines()[0] == f"ladder of {escaped}:{escaped}  {escaped}={escaped}"
    assert f"not done: eager, malloc keeps its pages: {escaped}" in text
    assert text.splitlines()[-2:] == [f"[1] {escaped}", f"ladder: {escaped}"]
    assert "\x1b" not in text
    assert validated(ladder_document(hostile()).to_json())["subject"]["name"] == HOSTILE


def test_a_ladder_without_layers_speaks_of_no_compiled_call() -> None:
    assert "torch.compile" not in printed(
        make_ladder(typed({**META, "names": ["eager"]}), frame({"eager": [10.0]}), "")
    )
