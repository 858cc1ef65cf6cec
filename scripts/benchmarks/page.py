"""Pages of captures and of very large traces: how long they take to write, how large they are, how soon they can be read.

    python -m scripts.benchmarks.page FOLDER [--events N ...] [--repeat N]

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

CAPTURES = ROOT / "traces" / "reference"
STORED = {
    "a compiled call": ["report", str(CAPTURES / "compiled")],
    "a difference": ["diff", str(CAPTURES / "eager"), str(CAPTURES / "compiled"), "--force"],
    "a ladder": ["report", str(CAPTURES / "ladder")],
}

CLAIM = Claim(
    claim="page",
    question="How soon is a page there, and does a trace of ten million events give one that opens?",
    method=(
        "The command line writes the pages of the reference captures and of drawn training jobs, each in fresh processes. "
        "The page is opened in headless Chromium, until its first chart is drawn. "
        "Times are medians of the rounds; memory is the largest resident set of all so far."
    ),
    command="python -m scripts.benchmarks.page FOLDER",
    columns=(
        Column("page of"),
        Column("input", "MB"),
        Column("written", "s"),
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
    page = options.folder / "page.html"
    rows = []
    print_heading(CLAIM.columns)
    for name, command in STORED.items():
        inputs = [Path(word) for word in command if Path(word).is_dir()]
        rows.append([name, *measured(command, inputs, page, options.repeat)])
        print_row(rows[-1])
    for events in options.events:
        trace = options.folder / f"drawn_{events}.json.gz"
        if not trace.exists():
            write_trace(trace, events)
        rows.append([f"{events:,} events", *measured(["analyze", str(trace)], [trace], page, options.repeat)])
        print_row(rows[-1])
    write_result(options.result, CLAIM.answered(rows))


def measured(command: list[str], inputs: list[Path], page: Path, repeat: int) -> list[Cell]:
    """The figures of a row."""
    written = [seconds_to_write(command, page) for _ in range(repeat)]
    peak_bytes = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    opened = [seconds_to_open(page) for _ in range(repeat)]
    known = [seconds for seconds in opened if seconds is not None]
    files = [file for path in inputs for file in [path, *path.rglob("*")] if file.is_file()]
    return [
        round(sum(file.stat().st_size for file in files) / 1e6, 1),
        round(statistics.median(written), 1),
        round(peak_bytes / 1e9, 2),
        round(page.stat().st_size / 1e6, 2),
        round(statistics.median(known), 2) if known else None,
    ]


def seconds_to_write(command: list[str], page: Path) -> float:
    """Seconds of the command, from its start to its end."""
    page.unlink(missing_ok=True)
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "overhead_lens", *command, "--html", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert page.exists(), done.stderr
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
