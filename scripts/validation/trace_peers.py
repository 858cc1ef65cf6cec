"""What ``analyze`` says of traces beside what HTA 0.5.0 and TraceLens 1.0 say of them.

    python -m scripts.validation.trace_peers --hta PYTHON --tracelens PYTHON [--traces FOLDER] [--only NAME ...]

PYTHON is the interpreter of an environment that has the peer (HTA wants pandas below 3). It runs ``peers/hta_figures.py`` or
``peers/tracelens_figures.py``, which print as JSON what the peer's public functions return.

A difference is explained only where it is proven: a plain reading of the file, which shares no code with ours beyond names of
categories, must give our figure exactly, and must give the peer's exactly once it reads the trace as the peer does. Then
readings are taken back one by one as long as the figure stays the peer's: those that remain are the reasons.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import Analyzer
from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result
from scripts.validation.peers.comparing import EQUAL, EXPLAINED, FAILED, NOTHING, UNEXPLAINED, Verdict, compared
from scripts.validation.peers.figures import Figure
from scripts.validation.peers.quantities import HTA, TRACELENS, Quantity, Told, quantities
from scripts.validation.peers.readings import REASONS, Read
from scripts.validation.peers.recording import read_recording

_COMMAND = "python -m scripts.validation.trace_peers --hta PYTHON --tracelens PYTHON"

EACH = Claim(
    claim="trace-peers-each",
    question="What do we, HTA 0.5.0 and TraceLens 1.0 say of each trace?",
    method=(
        "Every figure of ours that a peer tells as well, of every public trace, in ns, percent or as a count. "
        "Of figures by name the table has the sum over the names that ours lists. "
        "The words in the last column are the readings below which a difference is proven to come from."
    ),
    command=_COMMAND,
    columns=(
        Column("trace"),
        Column("quantity"),
        Column("peer"),
        Column("figures"),
        Column("ours"),
        Column("theirs"),
        Column("verdict"),
        Column("because of"),
    ),
    about=("overhead_lens/readers", "overhead_lens/taxonomy", "overhead_lens/traces"),
)

CLAIM = Claim(
    claim="trace-peers",
    question="Do HTA and TraceLens say the same of a trace?",
    method=(
        "What HTA 0.5.0 and TraceLens 1.0 return for every public trace is set beside ours, equal within their last digit. "
        "Where it differs, a plain reading of the file must give our figure, and theirs once it reads the trace as they do; "
        "the readings that are needed for that are the reasons. "
        "Traces of which both have none are not counted."
    ),
    command=_COMMAND,
    columns=(
        Column("quantity"),
        Column("peer"),
        Column("traces"),
        Column("equal"),
        Column("explained"),
        Column("unexplained"),
        Column("peer failed"),
        Column("because of (traces)"),
    ),
    about=("overhead_lens/readers", "overhead_lens/taxonomy", "overhead_lens/traces"),
)

CLAIMS = (EACH, CLAIM)

_SCRIPTS = {HTA: "hta_figures.py", TRACELENS: "tracelens_figures.py"}
_FOLDER = ROOT.parent / "shared" / "traces"
_NO_TRACE = "reference_values.json"


def main() -> None:
    """Compare on every trace, print what differs and both tables, and write the results."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--hta", metavar="PYTHON", help="interpreter with HolisticTraceAnalysis 0.5.0")
    parser.add_argument("--tracelens", metavar="PYTHON", help="interpreter with TraceLens 1.0")
    parser.add_argument("--traces", type=Path, default=_FOLDER, metavar="FOLDER", help="default: where the tests look")
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="traces whose name has this in it")
    parser.add_argument("--limit", type=float, default=900, metavar="SECONDS", help="for a peer and a trace")
    parser.add_argument("--each", type=Path, metavar="FILE", help="where the figures of each trace go")
    options = parser.parse_args()
    asked = {peer: python for peer, python in ((HTA, options.hta), (TRACELENS, options.tracelens)) if python}
    paths = [
        path
        for path in sorted(options.traces.glob("*.json*"))
        if path.name != _NO_TRACE and any(part in path.name for part in options.only)
    ]
    compared_figures: list[Compared] = []
    print_heading(EACH.columns)
    for path in paths:
        said = {peer: ask(peer, python, path, options.limit) for peer, python in asked.items()}
        for each in compare(path, said):
            compared_figures.append(each)
            if each.verdict.status != NOTHING:
                print_row(row_of(each))
    print()
    print_heading(CLAIM.columns)
    rows = table(compared_figures)
    for row in rows:
        print_row(row)
    notes = notes_of(compared_figures, len(paths))
    print("", *notes, sep="\n")
    write_result(options.result, CLAIM.answered(rows, notes))
    listed = [row_of(each) for each in compared_figures if each.verdict.status != NOTHING]
    write_result(options.each, EACH.answered(listed))


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity of one trace beside one peer's."""

    trace: str
    quantity: Quantity
    peer: str
    verdict: Verdict


def ask(peer: str, python: str, path: Path, limit_s: float) -> Mapping[str, Any]:
    """What a peer says of a trace: ``figures`` and ``errors``, or why it ``failed``."""
    script = Path(__file__).with_name("peers") / _SCRIPTS[peer]
    command = [python, str(script), str(path.resolve())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s, cwd=path.parent)
    except subprocess.TimeoutExpired:
        return {"failed": f"did not end in {limit_s:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {"failed": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    said: Mapping[str, Any] = json.loads(lines[-1])
    return said


def compare(path: Path, said: Mapping[str, Mapping[str, Any]]) -> Iterator[Compared]:
    """Every quantity of a trace beside every peer that tells it."""
    analysis = Analyzer(read_trace(path), default_classifier()).analysis()
    recording = read_recording(path)

    @cache
    def read(readings: frozenset[str]) -> Read:
        return Read(recording, readings)

    for quantity in quantities():
        ours = quantity.ours(analysis)
        for peer, told in quantity.peers.items():
            if peer in said:
                verdict = _verdict(quantity, told, ours, said[peer], lambda chosen: read(frozenset(chosen)))
                yield Compared(path.name.partition(".")[0], quantity, peer, verdict)


def _verdict(quantity: Quantity, told: Told, ours: Figure, said: Mapping[str, Any], read: Any) -> Verdict:
    error = said.get("failed") or said["errors"].get(told.function)
    if error:
        return Verdict(NOTHING if not ours else FAILED, ours, None, (error,))
    return compared(
        ours,
        told.of(said["figures"]),
        lambda chosen: quantity.figure(read(chosen)),
        told.readings,
        rounding=told.rounding,
        exact=told.exact,
    )


def row_of(each: Compared) -> list[Cell]:
    """A row of the table of figures."""
    unit = each.quantity.unit
    verdict = each.verdict
    names = verdict.ours if isinstance(verdict.ours, Mapping) else None
    return [
        each.trace,
        f"{each.quantity.name}, {unit}" if unit else each.quantity.name,
        each.peer,
        1 if names is None else len(names),
        _summed(verdict.ours, names),
        _summed(verdict.theirs, names),
        verdict.status,
        ", ".join(verdict.reasons) or None,
    ]


def _summed(figure: Figure, names: Mapping[str, float] | None) -> Cell:
    """A figure as a cell; of figures by name the sum over ``names``."""
    if isinstance(figure, Mapping):
        figure = sum(figure.get(name, 0) for name in names or figure)
    return None if figure is None else round(float(figure), 3) if float(figure) % 1 else int(figure)  # type: ignore[arg-type]


def table(all_compared: Sequence[Compared]) -> list[list[Cell]]:
    """A row for each quantity and peer."""
    rows: list[list[Cell]] = []
    for quantity in quantities():
        for peer in quantity.peers:
            verdicts = [
                each.verdict
                for each in all_compared
                if (each.quantity.name, each.quantity.unit, each.peer) == (quantity.name, quantity.unit, peer)
            ]
            if not verdicts:
                continue
            count = Counter(verdict.status for verdict in verdicts)
            reasons = Counter(
                reason for verdict in verdicts if verdict.status == EXPLAINED for reason in verdict.reasons
            )
            because = ", ".join(f"{reason} {times}" for reason, times in reasons.most_common())
            name = f"{quantity.name}, {quantity.unit}" if quantity.unit else quantity.name
            counts = [count[status] for status in (EQUAL, EXPLAINED, UNEXPLAINED, FAILED)]
            rows.append([name, peer, sum(counts), *counts, because or None])
    return rows


def notes_of(all_compared: Sequence[Compared], traces: int) -> list[str]:
    """How many traces, what each reading is, and what peers failed with."""
    explained = Counter(
        reason for each in all_compared if each.verdict.status == EXPLAINED for reason in each.verdict.reasons
    )
    failures: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in all_compared:
        if each.verdict.status == FAILED:
            failures[each.peer, each.verdict.reasons[0]].add(each.trace)
    return [
        f"{traces} traces.",
        *(f"`{reason}` ({explained[reason]} figures): {text}" for reason, text in REASONS.items() if explained[reason]),
        *(
            f"{peer} fails on {len(names)} traces of which ours says something, with `{error}`: {', '.join(sorted(names))}."
            for (peer, error), names in sorted(failures.items())
        ),
    ]


if __name__ == "__main__":
    main()
