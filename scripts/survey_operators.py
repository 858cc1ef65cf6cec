"""Do the rules know a kernel when they see one? Operators on so much data that hardly anything else can take time.

    python scripts/survey_operators.py [--stacks 300] [OPERATOR ...]

An operator that takes a millisecond has its arguments checked and its kernel chosen in some microseconds: whatever else the
rules give to Python, to the dispatcher or to nobody is a kernel's frame that they do not know. Each operator of
``scripts/laboratory/operators.py`` is timed and sampled in one process; the table has those that were given more than a few
microseconds too much, and the frames it was given for.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import accuracy

from overhead_lens.analysis.names import display_name
from overhead_lens.categories import Classifier, default_classifier
from overhead_lens.stack import Stack

SITE = accuracy.Site("operators", "operators", "kernel")

# What the call of an operator on any size may take, and the share that so few stacks may be off by.
SET_UP_NS = 10_000
SET_UP_SHARE = 0.02

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
    def too_much(self) -> bool:
        """Whether that is more than calling it can take."""
        return self.share > SET_UP_SHARE + SET_UP_NS / self.call_ns

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
    from operators import calls

    names = list(calls())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="default: all")
    parser.add_argument("--stacks", type=int, default=300)
    options = parser.parse_args()
    if unknown := sorted(set(options.operators) - set(names)):
        parser.error(f"no operator {', '.join(unknown)}; there are: {', '.join(names)}")
    classifier = default_classifier()
    print("| operator | ms | neither kernel nor allocation | given to |\n|---|---|---|---|")
    found = []
    with accuracy.warmed_up(SITE, 1) as bench:
        for name in options.operators or names:
            number = names.index(name)
            rows = [bench.time_block(0, number) for _ in range(3)]
            call_ns = min(row["steady_ns"] / row["calls"] for row in rows)
            (stacks,) = bench.sample([0], number, options.stacks)
            found.append(look_at(name, call_ns, stacks, classifier))
            if found[-1].too_much:
                print(found[-1].line(), flush=True)
    print(f"\n{sum(each.too_much for each in found)} of {len(found)} operators were given too much outside of kernels.")


if __name__ == "__main__":
    main()
