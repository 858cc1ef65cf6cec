"""Whether ``analyze`` answers what a person reads from the same trace.

    python -m scripts.validation.answers [--traces FOLDER]

``readings.toml`` was written before any finding was made for it: each trace read by hand, as the time per thread, the gaps of the
device, its work by kind and the longest frames and calls. A trace is answered if its first finding is the cause that was read;
one that has no single cause, if the headline says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from overhead_lens.readers.kineto.read import read_trace
from overhead_lens.report.outlines.recorded.findings import NO_CAUSE, headline
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.traces.analyzer import analyze_trace
from overhead_lens.traces.findings.model import CAUSE_SHARE
from scripts.results import ROOT, Claim, Table, columns_of

_TRACES = ROOT.parent / "shared" / "traces"
_OWN = ROOT / "traces"
_NONE = "none"

CLAIM = Claim(
    claim="answers",
    question="Does the first finding name the cause that a person reads from the trace?",
    method=(
        "Public traces were read by hand before any finding was written; two readings were revised later and are marked. "
        "Each row has the cause and the share of the window that was read, and beside them the first finding, what it "
        "bounds, and the headline. A trace without a "
        f"single cause is answered where the headline says so: no finding bounds {CAUSE_SHARE:.0%} of the window."
    ),
    command="python -m scripts.validation.answers",
    columns=columns_of(
        "trace | cause, as read | share, as read [share] | first finding | its bound [share] | answered | read | "
        "headline"
    ),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a person read from a trace; see ``readings.toml``."""

    trace: str
    cause: str
    share: float
    read: str


def readings() -> list[Reading]:
    """All of them."""
    text = Path(__file__).with_name("readings.toml").read_text(encoding="utf-8")
    return [Reading(**row) for row in msgspec.toml.decode(text)["reading"]]


def main() -> None:
    """Compare every reading whose trace is here."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("--traces", type=Path, default=_TRACES, metavar="FOLDER", help="default: where the tests look")
    options = parser.parse_args()
    table = Table(CLAIM)
    for reading in readings():
        path = next((path for folder in (options.traces, _OWN) if (path := folder / reading.trace).is_file()), None)
        if path is not None:
            table.add(_row(reading, path))
    answered_count = sum(row[5] == "yes" for row in table.rows)
    table.write(options.result, [f"{answered_count} of {len(table.rows)} traces are answered."])


def _row(reading: Reading, path: Path) -> tuple[str | float, ...]:
    analysis = analyze_trace(read_trace(path), default_classifier())
    title = headline(analysis)
    first, share = next(((each.id, each.share) for each in analysis.findings), (_NONE, 0.0))
    is_open = NO_CAUSE in title
    answered = is_open if reading.cause == _NONE else first == reading.cause and not is_open
    name = reading.trace.removesuffix(".gz").removesuffix(".json")
    return name, reading.cause, reading.share, first, share, "yes" if answered else "no", reading.read, title


if __name__ == "__main__":
    main()
