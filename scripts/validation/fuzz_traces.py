"""Analyze damaged traces until one shows a defect: anything but a result or an error of the program's own family.

    python -m scripts.validation.fuzz_traces [FOLDER ...] [--inputs N] [--seconds S] [--seed N] [--out RESULT.json]

Seeds are small traces that this folder generates (`trace_seeds.py`) and the traces of each FOLDER, cut down to some dozens of
events of all kinds. Each input is one of them, damaged in a few ways (`trace_mutations.py`): odd numbers and strings as values,
keys renamed, repeated and dropped, entries cut, moved and spliced, bytes flipped, compression damaged. It is read in both ways
(decoded as a whole, scanned in small blocks), which must agree, analyzed, and written as JSON (`trace_checks.py`).

An input follows from the seed and its number alone. The inputs run in a process of their own, so that one that kills it is
found too. RESULT.json says how many inputs ended in what, and lists the defects; the input of each is shortened and
stored beside it, in RESULT-inputs/. Exit code 1 if there is a defect.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import platform
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from scripts.results import Claim, Column, write_result
from scripts.validation.trace_mutations import mutated
from scripts.validation.trace_seeds import generated_seeds, recorded_seeds

CLAIM = Claim(
    claim="fuzz",
    question="Does a damaged trace break the reader or the analysis?",
    method=(
        "Small traces of all kinds are damaged at random: odd values, keys renamed and dropped, entries cut and moved, bytes "
        "flipped, compression damaged. Each is read in both ways, which must agree, analyzed, and written as JSON. A defect is "
        "anything but a result or a refusal in one line."
    ),
    command="python -m scripts.validation.fuzz_traces",
    columns=(Column("inputs"), Column("analyzed"), Column("refused"), Column("defects")),
    about=("overhead_lens/readers", "overhead_lens/report", "overhead_lens/taxonomy", "overhead_lens/traces"),
)

_BATCH = 4_000
_THOROUGH_EVERY = 4
_MOST_MEMORY_BYTES = 8 << 30
_HELPER = multiprocessing.get_context("spawn")


@dataclass
class Found:
    """A defect and the first input that showed it."""

    what: str
    where: str
    message: str
    number: int
    mutations: tuple[str, ...]
    data: bytes
    count: int = 1


@dataclass
class Tally:
    """What became of the inputs so far.

    Attributes:
        inputs: How many.
        verdicts, mutations, issues: Inputs per verdict, per mutation, and per reason under which something was counted.
        defects: By key.
    """

    inputs: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    mutations: Counter[str] = field(default_factory=Counter)
    issues: Counter[str] = field(default_factory=Counter)
    defects: dict[str, Found] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Take over what another process counted."""
        self.inputs += other.inputs
        self.verdicts += other.verdicts
        self.mutations += other.mutations
        self.issues += other.issues
        for key, found in other.defects.items():
            self.add_defect(key, found)

    def add_defect(self, key: str, found: Found) -> None:
        """Count a defect; the shortest of its inputs stays."""
        known = self.defects.get(key)
        if known is None:
            self.defects[key] = found
            return
        known.count += found.count
        if len(found.data) < len(known.data):
            known.number, known.mutations, known.data, known.message = (
                found.number, found.mutations, found.data, found.message,
            )  # fmt: skip


def make_input(seed: int, number: int, seeds: Sequence[bytes]) -> tuple[bytes, tuple[str, ...], int, bool]:
    """Input ``number``: its bytes, what was done to them, the scanner's block size, and whether everything is made of it."""
    random = Random(f"{seed}:{number}")
    data, mutations = mutated(random, seeds)
    return data, mutations, random.choice((17, 64, 300, 5_000, 2 << 20)), number % _THOROUGH_EVERY == 0


def run_batch(
    seed: int,
    numbers: range,
    seeds: Sequence[bytes],
    path: Path,
    known: frozenset[str] = frozenset(),
    until_s: float = 0,
) -> Tally:
    """Check inputs one after another.

    Args:
        seed, numbers: Which inputs.
        seeds: What they are made of.
        path: A file that each input is written to.
        known: Keys of defects whose inputs need not be shortened again.
        until_s: When to stop, by the monotonic clock; 0 for not before the last one.
    """
    from scripts.validation.trace_checks import check, shortened

    tally = Tally()
    for number in numbers:
        if until_s and time.monotonic() >= until_s:
            break
        data, mutations, block_bytes, thorough = make_input(seed, number, seeds)
        path.with_suffix(".number").write_text(str(number), encoding="ascii")
        path.write_bytes(data)
        outcome = check(path, block_bytes, thorough=thorough)
        tally.inputs += 1
        tally.verdicts[outcome.verdict] += 1
        tally.mutations.update(set(mutations))
        if outcome.analysis is not None:
            tally.issues.update(outcome.analysis.issues)
        if outcome.defect is None:
            continue
        defect = outcome.defect
        if defect.key not in known and defect.key not in tally.defects and defect.what != "TimeoutError":

            def is_same(shorter: bytes, key: str = defect.key, block: int = block_bytes, all_: bool = thorough) -> bool:
                path.write_bytes(shorter)
                again = check(path, block, thorough=all_).defect
                return again is not None and again.key == key

            data = shortened(data, is_same)
        found = Found(defect.what, defect.where, defect.message, number, mutations, data)
        tally.add_defect(defect.key, found)
    return tally


def _serve(connection: Any, arguments: tuple[Any, ...]) -> None:
    """In the helper process: one batch."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    connection.send(run_batch(*arguments))


def run(seed: int, inputs: int, seconds: float, seeds: Sequence[bytes]) -> Tally:
    """Check ``inputs`` inputs, or as many as ``seconds`` allow; 0 for no limit."""
    tally, first = Tally(), 0
    begun_s = time.monotonic()
    until_s = begun_s + seconds if seconds else 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        while (not inputs or first < inputs) and (not until_s or time.monotonic() < until_s):
            numbers = range(first, min(first + _BATCH, inputs) if inputs else first + _BATCH)
            ours, theirs = _HELPER.Pipe(duplex=False)
            arguments = (seed, numbers, seeds, path, frozenset(tally.defects), until_s)
            helper = _HELPER.Process(target=_serve, args=(theirs, arguments))
            helper.start()
            theirs.close()
            try:
                tally.add(ours.recv())
                first = numbers.stop
            except EOFError:
                helper.join()
                number = int(path.with_suffix(".number").read_text(encoding="ascii"))
                killed = Found("killed", "", f"exit code {helper.exitcode}", number,
                               make_input(seed, number, seeds)[1], path.read_bytes())  # fmt: skip
                tally.add_defect(f"killed {helper.exitcode}", killed)
                tally.verdicts["defect"] += 1
                tally.inputs += number + 1 - first
                first = number + 1
            helper.join()
            rate = 60 * tally.inputs / (time.monotonic() - begun_s)
            print(
                f"{tally.inputs:,} inputs, {rate:,.0f} a minute; defects: {_listed(tally)}", file=sys.stderr, flush=True
            )
    return tally


def _listed(tally: Tally) -> str:
    return "; ".join(f"{key} (input {found.number})" for key, found in tally.defects.items()) or "none"


def result_of(tally: Tally, seed: int, seconds: float, seeds: dict[str, bytes], folder: Path) -> dict[str, Any]:
    """The JSON values of a run; the inputs of its defects are written into ``folder``."""
    defects = []
    for at, (key, found) in enumerate(sorted(tally.defects.items())):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{at:03}.json"
        path.write_bytes(found.data)
        defects.append(
            {"key": key, "what": found.what, "where": found.where, "message": found.message, "count": found.count,
             "number": found.number, "mutations": found.mutations, "bytes": len(found.data), "input": path.name}
        )  # fmt: skip
    return {
        "seed": seed,
        "inputs": tally.inputs,
        "seconds": round(seconds, 1),
        "python": platform.python_version(),
        "seeds": {name: len(data) for name, data in seeds.items()},
        "verdicts": dict(tally.verdicts),
        "mutations": dict(sorted(tally.mutations.items())),
        "issues": dict(sorted(tally.issues.items())),
        "defects": defects,
    }


def main() -> None:
    """Run, write the result, and exit by it."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="recorded traces to start from as well")
    parser.add_argument("--inputs", type=int, default=0, help="how many inputs; without it --seconds says when to stop")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long; 60 where neither is given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("fuzz_traces.json"))
    options = parser.parse_args()
    seconds = options.seconds or (0.0 if options.inputs else 60.0)
    seeds = generated_seeds()
    for folder in options.folders:
        if not folder.is_dir():
            parser.error(f"{folder} is no folder")
        seeds |= recorded_seeds(folder)
    begun_s = time.monotonic()
    tally = run(options.seed, options.inputs, seconds, list(seeds.values()))
    inputs = options.out.with_name(f"{options.out.stem}-inputs")
    result = result_of(tally, options.seed, time.monotonic() - begun_s, seeds, inputs)
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for defect in result["defects"]:
        print(f"{defect['count']:6} x {defect['key']}: {defect['message']} ({inputs.name}/{defect['input']})")
    print(f"{tally.inputs:,} inputs: {dict(tally.verdicts)}; {options.out}")
    counts = (tally.inputs, tally.verdicts["analyzed"], tally.verdicts["refused"], len(tally.defects))
    write_result(options.result, CLAIM.answered([counts]))
    sys.exit(1 if tally.defects else os.EX_OK)


if __name__ == "__main__":
    main()
