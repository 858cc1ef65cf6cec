"""Start-up of `overhead-lens --help` against a bare typer program, interleaved: the ratio of the medians.

python scripts/bench_help.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

BARE = """
import typer
app = typer.Typer()
@app.command()
def one(name: str): pass
@app.command()
def two(name: str): pass
app(["--help"])
"""

SIDES = {
    "bare typer": [sys.executable, "-c", BARE],
    "overhead-lens": [
        sys.executable,
        "-c",
        "import sys; sys.argv[1:] = ['--help']; from overhead_lens.__main__ import main; main()",
    ],
}


def main(rounds: int) -> None:
    """Print both medians and their ratio."""
    taken: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(rounds):
        for name, command in SIDES.items():
            start = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            taken[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    for name, seconds in medians.items():
        print(f"{name:<14} {1e3 * seconds:.0f} ms")
    print(f"ratio {medians['overhead-lens'] / medians['bare typer']:.2f} over {rounds} rounds")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
