"""Do the rules know a kernel when they see one? Operators on so much data that hardly anything else can take time.

    python -m scripts.validation.operators [--stacks 300] [OPERATOR ...]

An operator that takes a millisecond has its arguments checked and its kernel chosen in some microseconds, by many functions: a
single frame that is neither kernel nor allocation and yet takes much of it is a kernel's that the rules do not know. Each
operator of ``laboratory/surveyed`` is timed and sampled in one process; the table has those with such a frame,
Python's own aside, and what the rules gave to whom.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from overhead_lens.errors import MeasurementError
from overhead_lens.machine.operations import WARM_UP
from overhead_lens.stack import Stack
from overhead_lens.stats.distributions import binomial_upper_tail
from overhead_lens.taxonomy.classifier import Classifier, default_classifier
from overhead_lens.taxonomy.names import display_name
from scripts.results import Cell, Claim, Table, columns_of
from scripts.validation.known_costs.bench import warmed_up
from scripts.validation.known_costs.sites import Site
from scripts.validation.laboratory.known_cost import NAMES_FILE

CLAIM = Claim(
    claim="operators",
    question="Do the rules know a kernel when they see one?",
    method=(
        "Some 550 operators are called on so much data that hardly anything but their kernels can take time. "
        "Each is timed and sampled in one process. "
        "A single frame outside of kernels and allocation that takes more than 3 % is a kernel that no rule knows."
    ),
    command="python -m scripts.validation.operators",
    columns=columns_of("operator | call [ms] | neither kernel nor allocation [share] | given to"),
)

SITE = Site("operators", "operators", "kernel")

# What some operators do over and over, for each row of their data: it is what it is called, however long it takes.
KNOWN_SET_UP = ("at::native::DispatchStubImpl::", "at::native::select_symint")

# The most that one function which sets an operator up may take of it, and how likely stacks are to show more by chance.
SET_UP_SHARE, _CHANCE = 0.03, 0.01

_WORK = frozenset({"kernel", "allocation"})


@dataclass(frozen=True, slots=True)
class SampledOperator:
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
        most = max(counts, default=0)
        return binomial_upper_tail(most, self.stacks - most, SET_UP_SHARE) < _CHANCE

    def row(self) -> list[Cell]:
        """The row of the table."""
        frames = ", ".join(
            f"{category}: {frame} {count / self.stacks:.0%}" for (category, frame), count in self.others.most_common(3)
        )
        return [self.name, round(self.call_ns / 1e6, 2), round(self.share, 4), frames]


def look_at(name: str, call_ns: float, stacks: list[Stack], classifier: Classifier) -> SampledOperator:
    """Classify the stacks of one operator."""
    others: Counter[tuple[str, str]] = Counter()
    classifier = classifier.fitted(stacks)
    for stack in stacks:
        verdict = classifier.classify(stack)
        if verdict.attribution.category not in _WORK:
            others[verdict.attribution.category, display_name(verdict.frame)] += stack.count
    return SampledOperator(name, call_ns, sum(stack.count for stack in stacks), others)


def main() -> None:
    """Sample every operator, print those of which the rules know too little, and write the result."""
    parser = CLAIM.parser(__doc__)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="default: all")
    parser.add_argument("--stacks", type=int, default=300)
    options = parser.parse_args()
    table = Table(CLAIM)
    measured, missed = [], []
    with warmed_up(SITE, 1) as bench:
        names = json.loads((bench.folder / NAMES_FILE).read_text(encoding="utf-8"))
        if unknown := sorted(set(options.operators) - set(names)):
            parser.error(f"no operator {', '.join(unknown)}; there are: {', '.join(names)}")
        for name in options.operators or names:
            number = names.index(name)
            bench.switch.set(number)
            call_ns = bench.workers[0][0].ask(WARM_UP).call_ns
            try:
                (stacks,) = bench.sample([0], number, options.stacks)
            except MeasurementError as error:
                missed.append(f"{name} ({error})")
                continue
            measured.append(look_at(name, call_ns, stacks, default_classifier()))
            if measured[-1].unknown:
                table.add(measured[-1].row())
    notes = [f"The rules do not know a kernel of {len(table.rows)} of {len(measured)} operators."]
    if missed:
        notes.append(f"Not sampled: {', '.join(missed)}.")
    table.write(options.result, notes)


if __name__ == "__main__":
    main()
