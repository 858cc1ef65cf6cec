"""Tables and sentences of the document, made from figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from overhead_lens.units import format_ns, format_signed_ns
from scripts.reproduction.outcomes import NOT_YET, Outcome, format_ratio, ratio

TIME_HEADER = ("call", "source", "published", "here (95 %)", "here / published")
RATIO_HEADER = ("ratio of times", "source", "published", "here (95 %)", "here / published")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table and the empty line after it."""
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |" for cells in lines] + [""]


def here(outcome: Outcome) -> str:
    """A measured figure with its interval, or why there is none."""
    if isinstance(outcome, str):
        return f"not measured: {outcome}" if outcome != NOT_YET else outcome
    said = f"{format_ns(outcome.ns)} ({format_ns(outcome.low_ns)} .. {format_ns(outcome.high_ns)})"
    return f"{said} disturbed" if outcome.is_disturbed else said


def time_row(label: str, source: str, published_ns: float, outcome: Outcome) -> list[str]:
    """A row of: what, source, published, here, here / published."""
    quotient = "" if isinstance(outcome, str) else format_ratio(outcome.ns / published_ns)
    return [label, source, format_ns(published_ns), here(outcome), quotient]


def ratio_row(label: str, source: str, published: float, slow: Outcome, fast: Outcome) -> list[str]:
    """The same for how many times faster ``fast`` is than ``slow``."""
    missing = slow if isinstance(slow, str) else fast
    if isinstance(slow, str) or isinstance(fast, str):
        return [label, source, format_ratio(published), here(missing), ""]
    measured = ratio(slow, fast)
    said = f"{measured} disturbed" if slow.is_disturbed or fast.is_disturbed else str(measured)
    return [label, source, format_ratio(published), said, format_ratio(measured.value / published)]


def budget_sentence(label: str, outcome: Outcome) -> list[str]:
    """``label`` takes so long, with every category of 5 % or more; nothing where it was not profiled."""
    if isinstance(outcome, str) or not outcome.host_ns:
        return []
    shares = {name: ns / outcome.ns for name, ns in outcome.categories().items()}
    said = [f"{name} {share:.0%}" for name, share in shares.items() if share >= 0.05]
    return [f"{label} ({format_ns(outcome.ns)}): {', '.join(said)}."]


def difference_sentence(base_label: str, base: Outcome, new_label: str, new: Outcome) -> list[str]:
    """By how much ``new`` is slower or faster, with every category that makes 5 % or more of that."""
    if isinstance(base, str) or isinstance(new, str) or not base.host_ns or not new.host_ns:
        return []
    total = new.ns - base.ns
    moved = {
        name: new.host_ns.get(name, 0.0) - base.host_ns.get(name, 0.0)
        for name in (*base.categories(), *new.categories())
    }
    largest = sorted(moved.items(), key=lambda item: -abs(item[1]))
    said = [f"{name} {format_signed_ns(ns).replace('-', '−')}" for name, ns in largest if abs(ns) >= 0.05 * abs(total)]
    word = "more" if total >= 0 else "less"
    return [f"{new_label} takes {format_ns(abs(total))} {word} than {base_label}: {', '.join(said)}."]


def kernel_sentence(slow_label: str, slow: Outcome, fast_label: str, fast: Outcome) -> list[str]:
    """How much of a speed-up the kernels alone make, and how much lies outside them."""
    if (
        isinstance(slow, str)
        or isinstance(fast, str)
        or not slow.host_ns.get("kernel")
        or not fast.host_ns.get("kernel")
    ):
        return []
    kernels = slow.host_ns["kernel"] / fast.host_ns["kernel"]
    outside = [1 - each.host_ns["kernel"] / each.ns for each in (slow, fast)]
    faster = format_ratio(slow.ns / fast.ns)
    sentence = (
        f"The kernels of {fast_label} alone are {format_ratio(kernels)} as fast as those of {slow_label}; outside kernels lie "
        f"{outside[0]:.0%} of {slow_label} and {outside[1]:.0%} of {fast_label}, which together make it {faster}."
    )
    return [sentence]


def kernel_rate_sentence(flops: int, outcomes: Mapping[str, Outcome]) -> list[str]:
    """What the kernels of calls that do ``flops`` operations reach, by label."""
    said = [
        f"{flops / outcome.host_ns['kernel']:.3g} GFLOP/s in {label}"
        for label, outcome in outcomes.items()
        if not isinstance(outcome, str) and outcome.host_ns.get("kernel")
    ]
    return [f"While a kernel runs, it does {', '.join(said)}."] if said else []


def bandwidth_sentence(
    size_bytes: int, published_ns: Mapping[str, float], outcomes: Mapping[str, Outcome]
) -> list[str]:
    """Bytes per time of calls that read ``size_bytes``, published and here, by label."""
    said = [
        f"{label} {size_bytes / ns:.3g} GB/s published, {size_bytes / outcome.ns:.3g} GB/s here"
        for label, ns in published_ns.items()
        if not isinstance(outcome := outcomes[label], str)
    ]
    return [f"Reading {size_bytes / 1e9:.3g} GB: {'; '.join(said)}."] if said else []


def paragraph(*sentences: Sequence[str]) -> list[str]:
    """A list with an item for each sentence, and the empty line after it."""
    said = [sentence for group in sentences for sentence in group]
    return ["- " + sentence for sentence in said] + ([""] if said else [])
