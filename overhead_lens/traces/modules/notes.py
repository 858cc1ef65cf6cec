"""What is missing from a trace's modules, in sentences."""

from __future__ import annotations

from overhead_lens.traces.modules.model import MARKS, ModuleBudgets


def module_notes(modules: ModuleBudgets | None, *, has_operators: bool) -> list[str]:
    """Sentences that a reader of the budget per module must know; ``has_operators``: the trace has some to be divided."""
    if modules is None:
        unknown = "no module is named in the trace, so there is no budget per module: record with with_stack=True"
        return [unknown] if has_operators else []
    notes = []
    if modules.known_from == MARKS:
        notes.append(
            "modules are those that annotations of the program mark, one instance each: with_stack=True records all of them"
        )
    if modules.unjoined_nodes:
        notes.append(
            f"{modules.unjoined_nodes:,} of {modules.backward_nodes:,} nodes of the backward pass have no forward operator in "
            "the trace: they count as what is open around them, mostly as outside of any module"
        )
    return notes
