"""Measure what others have published on this machine, and write docs/reproduction.md with the two beside each other.

    python scripts/reproduce.py [--only NAME ...] [--folder FOLDER] [--quick]

A part is a table of the document; a part consists of units, each of which is stored as FOLDER/PART.UNIT.json once it is
measured and is not measured again unless it failed: a run can be interrupted and goes on where it was. NAME is PART or
PART.UNIT. The document is written from whatever FOLDER holds. Absolute figures are of other hardware and other versions; the
ratio is not a pass mark.

``reproduction/`` has a module for each kind of workload (its calls, their published figures, its tables); ``outcomes.py``,
``measuring.py``, ``storing.py`` and ``wording.py`` are what they have in common, ``document.py`` puts them in their order.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.reproduction.document import PARTS, document_text
from scripts.reproduction.storing import measure_missing, read_stored

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "reproduction.md"


def main() -> None:
    """Measure what is missing and write the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="measure these parts or units only")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "traces" / "reproduction", help="where figures are stored"
    )
    parser.add_argument("--quick", action="store_true", help="profile with --quick: wider intervals in half the time")
    options = parser.parse_args()
    known = {name for part in PARTS for name in (part.name, *(f"{part.name}.{unit.name}" for unit in part.units))}
    if unknown := sorted(set(options.only) - known):
        parser.error(f"no part or unit {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        measure_missing(part, options)
    DOCUMENT.write_text(
        document_text({part.name: read_stored(part, options.folder) for part in PARTS}), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
