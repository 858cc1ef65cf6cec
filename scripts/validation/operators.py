"""Do the rules know a kernel when they see one? Operators on so much data that hardly anything else can take time.

    python scripts/survey_operators.py [--stacks 300] [OPERATOR ...]

An operator that takes a millisecond has its arguments checked and its kernel chosen in some microseconds, by many functions: a
single frame that is neither kernel nor allocation and yet takes much of it is a kernel's that the rules do not know. Each
operator of ``scripts/laboratory/surveyed`` is timed and sampled in one process; the table has those with such a frame,
Python's own aside, and what the rules gave to whom.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass

from overhead_lens.errors import MeasurementError
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import Classifier, default_classifier
from overhead_lens.taxonomy.names import display_name
from scripts.known_costs.bench import warmed_up
from scripts.known_costs.sites import LABORATORY, Site

SITE = Site("operators", "operators", "kernel")

# What some operators do over and over, for each row of their data: it is what it is called, however long it takes.
KNOWN_SET_UP = ("at::native::DispatchStubImpl::", "at::native::select_symint")

# The most that one function which sets an operator up may take of it.
SET_UP_SHARE = 0.03

_WORK = frozenset({"kernel", "allocation"})


@dataclass(frozen=True, slots=True)
class Found:
    """One operator: ns per call, stacks, and stacks by category and frame outside of kernels and allocation."""

    name: str
    call_ns: float
    stacks: int
    others: Counter[tuple[str, str]]

    @property
    def share(self) -> float:
        """Share of the call that is neither kernel nor allocation."""
        return sum(self.others.values()) / self.stacks

    @property
    def unknown(self) -> bool:
        """Whether a frame that is not Python's takes more than setting an operator up can."""
        counts = (
            count
            for (category, frame), count in self.others.items()
            if category != "python" and not frame.startswith(KNOWN_SET_UP)
        )
        return max(counts, default=0) > SET_UP_SHARE * self.stacks

    def line(self) -> str:
        """The row of the table."""
        frames = ", ".join(
            f"{category}: `{frame}` {count / self.stacks:.0%}"
            for (category, frame), count in self.others.most_common(3)
        )
        return f"| {self.name} | {self.call_ns / 1e6:.2f} | {self.share:.1%} | {frames} |"


def look_at(name: str, call_ns: float, stacks: list[Stack], classifier: Classifier) -> Found:
    """Classify the stacks of one operator."""
    others: Counter[tuple[str, str]] = Counter()
    classifier = classifier.fitted(stacks)
    for stack in stacks:
        verdict = classifier.classify(stack)
        if verdict.claim.category not in _WORK:
            others[verdict.claim.category, display_name(verdict.frame)] += stack.count
    return Found(name, call_ns, sum(stack.count for stack in stacks), others)


def main() -> None:
    """Sample every operator and print those of which the rules know too little."""
    sys.path.insert(0, str(LABORATORY))
    from surveyed import all_calls

    names = list(all_calls())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="default: all")
    parser.add_argument("--stacks", type=int, default=300)
    options = parser.parse_args()
    if unknown := sorted(set(options.operators) - set(names)):
        parser.error(f"no operator {', '.join(unknown)}; there are: {', '.join(names)}")
    classifier = default_classifier()
    print("| operator | ms | neither kernel nor allocation | given to |\n|---|---|---|---|")
    found, missed = [], []
    with warmed_up(SITE, 1) as bench:
        for name in options.operators or names:
            number = names.index(name)
            bench.switch.set(number)
            call_ns = bench.workers[0][0].ask("warm_up")["call_ns"]
            try:
                (stacks,) = bench.sample([0], number, options.stacks)
            except MeasurementError as error:
                missed.append(f"{name} ({error})")
                continue
            found.append(look_at(name, call_ns, stacks, classifier))
            if found[-1].unknown:
                print(found[-1].line(), flush=True)
    print(
        f"\n{sum(each.unknown for each in found)} of {len(found)} operators have a kernel that the rules do not know."
    )
    if missed:
        print(f"Not sampled: {', '.join(missed)}.")


if __name__ == "__main__":
    main()
