"""Measure what others have published on this machine, and write tables with the two beside each other.

    python -m scripts.reproduction [--only NAME ...] [--folder FOLDER] [--results FOLDER] [--quick]

A part is a workload; it consists of units, each of which is stored as FOLDER/PART/UNIT.json once it is measured and is not
measured again unless it failed: an interrupted run goes on where it was. NAME is PART or PART.UNIT. The tables are made from
whatever FOLDER holds. Absolute figures are of other hardware and other versions; the ratio is not a pass mark.

There is a module for each kind of workload (its calls, their published figures, its rows); ``outcomes.py``, ``measuring.py`` and
``storing.py`` are what they have in common, ``tables.py`` makes the results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.reproduction.storing import measure_missing, read_stored
from scripts.reproduction.tables import PARTS, results_of
from scripts.results import RESULTS, ROOT, write_result


def main() -> None:
    """Measure what is missing and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="measure these parts or units only")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "reproduction", help="where figures are stored")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where tables are written")
    parser.add_argument("--quick", action="store_true", help="profile with --quick: wider intervals in half the time")
    options = parser.parse_args()
    known = {name for part in PARTS for name in (part.name, *(f"{part.name}.{unit.name}" for unit in part.units))}
    if unknown := sorted(set(options.only) - known):
        parser.error(f"no part or unit {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        measure_missing(part, options)
    for result in results_of({part.name: read_stored(part, options.folder) for part in PARTS}):
        write_result(options.results / f"{result.claim}.json", result)
        print(options.results / f"{result.claim}.json")


if __name__ == "__main__":
    main()
