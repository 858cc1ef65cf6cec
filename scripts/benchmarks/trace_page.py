"""The page of a very large trace: how long it takes to write, how large it is, how soon it can be read.

    python -m scripts.benchmarks.trace_page FOLDER [--events N ...] [--repeat N]

FOLDER keeps the drawn traces (``scripts.benchmarks.large_trace``). Each round is a fresh process of the command line; the page is
opened in headless Chromium, until its first chart is drawn.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from scripts.benchmarks.large_trace import write_trace
from scripts.results import ROOT, Cell, Claim, Column, print_heading, print_row, write_result

CLAIM = Claim(
    claim="trace-page",
    question="Does a trace of ten million events give a page that opens?",
    method=(
        "A drawn training job of that many events is analyzed by the command line with `--html`, in fresh processes. "
        "The page is opened in headless Chromium, until its first chart is drawn. "
        "Times are medians of the rounds; memory is the largest resident set of all."
    ),
    command="python -m scripts.benchmarks.trace_page FOLDER",
    columns=(
        Column("events"),
        Column("trace, gzipped", "MB"),
        Column("analyzed, page written", "s"),
        Column("peak memory", "GB"),
        Column("page", "MB"),
        Column("first chart", "s"),
    ),
)


def main() -> None:
    """Draw what is missing, measure, print the table and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    print_heading(CLAIM.columns)
    for events in options.events:
        rows.append(row_of(options.folder, events, options.repeat))
        print_row(rows[-1])
    write_result(options.result, CLAIM.answered(rows))


def row_of(folder: Path, events: int, repeat: int) -> list[Cell]:
    """The row of one trace."""
    trace, page = folder / f"drawn_{events}.json.gz", folder / "page.html"
    if not trace.exists():
        write_trace(trace, events)
    written = [seconds_to_write(trace, page) for _ in range(repeat)]
    peak_bytes = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    opened = [seconds_to_open(page) for _ in range(repeat)]
    known = [seconds for seconds in opened if seconds is not None]
    return [
        events,
        round(trace.stat().st_size / 1e6, 1),
        round(statistics.median(written), 1),
        round(peak_bytes / 1e9, 2),
        round(page.stat().st_size / 1e6, 2),
        round(statistics.median(known), 2) if known else None,
    ]


def seconds_to_write(trace: Path, page: Path) -> float:
    """Seconds of the command, from its start to its end."""
    page.unlink(missing_ok=True)
    command = [sys.executable, "-m", "overhead_lens", "analyze", "--quiet", str(trace), "--html", str(page)]
    begin = time.perf_counter()
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def seconds_to_open(page: Path) -> float | None:
    """Seconds until the first chart is drawn; None without playwright or a browser."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright import sync_api
    except ImportError:
        return None
    if program is None:
        return None
    with sync_api.sync_playwright() as driver:
        browser: Any = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        shown = browser.new_page()
        begin = time.perf_counter()
        shown.goto(page.absolute().as_uri())
        shown.wait_for_selector("[data-chart] svg.main-svg", state="attached")
        taken = time.perf_counter() - begin
        browser.close()
    return taken


if __name__ == "__main__":
    main()
