"""Several traces in words: how the ranks or batch sizes compare, then the trace that tells most."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from statistics import median_low

from overhead_lens.report.cells import heads, row, time
from overhead_lens.report.outline import Bar, Bars, Block, Notes, Outline, Piece, Section, Table, Tone
from overhead_lens.report.outlines.host import host_bar, hosts_table
from overhead_lens.report.outlines.recorded.collectives import straggler_blocks, straggler_lines
from overhead_lens.report.outlines.recorded.critical_path import over_ranks_notes, over_ranks_sections
from overhead_lens.report.outlines.recorded.findings import finding_sections, headline
from overhead_lens.report.outlines.recorded.launches import batch_section, batches_sentence
from overhead_lens.report.outlines.trace import title, trace_outline
from overhead_lens.report.text.blocks import counted, left_out
from overhead_lens.traces.collectives.stragglers import rank_name
from overhead_lens.traces.job.ranks import Job, RanksAnalysis, RankTime
from overhead_lens.traces.model import TraceAnalysis, TraceFailure
from overhead_lens.units import format_ns

_BRIEF_RANKS, _MOST_RANKS = 16, 64
_BRIEF_SPREADS, _MOST_SPREADS = 8, 20
_MOST_CAUSES = 3
_MOST_OTHERS = 8


def job_outline(job: Job) -> Outline:
    """One trace, or several."""
    failures = [f"{each.path}: {each.error}" for each in job.results if isinstance(each, TraceFailure)]
    failed = Section("Traces that could not be read", [Notes(failures, tone="warning")], reach="everywhere")
    detailed = job.detailed
    if detailed is None:
        return Outline(counted(len(failures), "trace"), "None could be read.", Section.filled(failed), has_answer=False)
    others = [each for each in job.by_weight if isinstance(each, TraceAnalysis) and each is not detailed]
    here = 1 if job.ranks is None else len(job.ranks.ranks)
    outline = replace(_of_one(detailed, here), others=lambda: (_of_one(each, here) for each in others))
    if job.ranks is None and job.batches is None:
        return replace(outline, sections=Section.filled(*outline.sections, failed, _others(others, here)))
    if job.batches is not None:
        name, sentence = detailed.path, batches_sentence(job.batches)
        compared, notes = [batch_section(job.batches)], job.batches.notes
    elif job.ranks is not None:
        name, sentence = _named(job.ranks.slowest), ranks_sentence(job.ranks)
        compared = list(_compared(job.ranks, [detailed, *others]))
        notes = (*job.ranks.notes, *over_ranks_notes(job.ranks.critical_path))
    return replace(
        outline,
        title=counted(1 + len(others), "trace"),
        sentence=sentence,
        sections=Section.filled(
            *(*compared, failed),
            Section(outline.title, [Notes([*outline.about, outline.sentence])], reach="everywhere"),
            *(replace(each, heading=f"{name}: {each.heading}") for each in outline.sections),
            _others(others, here),
        ),
        about=(),
        warnings=[*notes, *(f"{name}: {warning}" for warning in outline.warnings)],
        origin=lambda: [(f"trace {at}", each.path) for at, each in enumerate([detailed, *others][:_MOST_RANKS], 1)],
    )


def _compared(ranks: RanksAnalysis, analyses: Sequence[TraceAnalysis]) -> Iterator[Section]:
    yield from finding_sections(ranks.findings)
    labels = _slow_and_fastest(ranks, _MOST_RANKS)
    shown = [rank for rank in ranks.ranks if rank.label in labels]
    by_path = {each.path: each.host for each in analyses}
    hosts = [(_name(rank, ranks), rank.wall_ns, by_path[rank.path]) for rank in shown if by_path[rank.path]]
    bars: list[Block] = []
    if hosts:
        full_ns = max(wall_ns for _, wall_ns, _ in hosts)
        described = f"The window of {len(hosts)} ranks by category of the busiest thread, to one scale."
        bars.append(Bars([host_bar(name, format_ns(ns), host, full_ns) for name, ns, host in hosts], described))
    if ranks.by_collectives:
        longest_ns = max(rank.wait_ns + rank.transfer_ns for rank in shown)
        described = "Time of each rank in collectives; the others wait longest for the work of the slowest."
        bars.append(Bars([_collectives(rank, ranks, longest_ns) for rank in shown], described))
    stragglers = ranks.stragglers
    lines = [] if stragglers is None else straggler_lines(stragglers)
    tables = _table(shown, _slow_and_fastest(ranks, _BRIEF_RANKS), ranks), _spreads(ranks)
    more = Notes(left_out(len(ranks.ranks) - _MOST_RANKS, "rank", " in between"))
    yield Section("Ranks", [Notes(lines), *bars, *tables, more], reach="everywhere")
    yield from over_ranks_sections(ranks.critical_path)
    of_steps = [] if stragglers is None else list(straggler_blocks(stragglers))
    yield Section.folded("Ranks: categories, and waits step by step", hosts_table("", "window", hosts), *of_steps)


def _slow_and_fastest(ranks: RanksAnalysis, most: int) -> set[str]:
    """Labels of at most ``most`` ranks: the slowest ones and the fastest."""
    by_weight = sorted(ranks.ranks, key=lambda rank: rank.wait_ns if ranks.by_collectives else -rank.wall_ns)
    labels = sorted((rank.label for rank in by_weight), key=lambda label: label != ranks.slowest)
    return {*labels[: most - 1], labels[-1]}


def _collectives(rank: RankTime, ranks: RanksAnalysis, longest_ns: int) -> Bar:
    transfer = Piece("communication", rank.transfer_ns, f"transfer {format_ns(rank.transfer_ns)}")
    waiting = Piece("wait", rank.wait_ns, f"waiting for others {format_ns(rank.wait_ns)}")
    return Bar(_name(rank, ranks), f"waits {format_ns(rank.wait_ns)}", [transfer, waiting], longest_ns)


def _name(rank: RankTime, ranks: RanksAnalysis) -> str:
    return rank_name(rank.label) + (" (slowest)" if rank.label == ranks.slowest else "")


def _table(shown: Sequence[RankTime], brief: Collection[str], ranks: RanksAnalysis) -> Table:
    """Each rank's time in collectives and on its devices; outside of pages only some of them."""
    columns = heads("rank | >window | >collectives ~2 | >waiting in them | >transfer ~1 | >compute | >idle")
    rows = []
    for rank in shown:
        on_device = (rank.quantities["device.compute"], rank.quantities["device.idle"])
        times = map(time, (rank.wait_ns, rank.transfer_ns, *on_device))
        tone: Tone = "bold" if rank.label == ranks.slowest else ""
        is_minor = rank.label not in brief
        rows.append(row(rank.label, time(rank.wall_ns), rank.collectives, *times, tone=tone, is_minor=is_minor))
    return Table(columns, rows, more="more in between")


def _spreads(ranks: RanksAnalysis) -> Table:
    rows = [
        row(spread.name, *map(time, (spread.min_ns, spread.median_ns, spread.max_ns)), spread.max_rank)
        for spread in ranks.spreads[:_MOST_SPREADS]
    ]
    columns = heads("spread over the ranks, widest first | >min | >median | >max | of rank")
    return Table(columns, rows, brief=_BRIEF_SPREADS, more="")


def _of_one(analysis: TraceAnalysis, ranks: int) -> Outline:
    """One trace; ``ranks`` of its job are analyzed together."""
    return replace(trace_outline(analysis), sentence=headline(analysis, ranks))


def _others(others: Sequence[TraceAnalysis], ranks: int) -> Section:
    lines = [f"{title(each)}: {headline(each, ranks)}" for each in others[:_MOST_OTHERS]]
    more = len(others) - len(lines)
    lines += [f"{counted(more, 'more trace')}: --all prints every one"] if more > 0 else []
    return Section("Other traces", [Notes(lines)], is_open=False)


def ranks_sentence(ranks: RanksAnalysis) -> str:
    """Who is slow, by how much and why, in words."""
    slowest = next(rank for rank in ranks.ranks if rank.label == ranks.slowest)
    none = f"None of the {len(ranks.ranks)} ranks alone "
    if ranks.stragglers is not None:
        leads_ns = {each.rank: each.lead_ns for each in ranks.stragglers.holders}
        if not any(leads_ns.values()):
            return f"{none}holds the others up in collectives."
        ns, why = (
            leads_ns.get(ranks.slowest, 0),
            "the others wait for it in collectives, which could end {} sooner at most",
        )
    else:
        ns = slowest.wall_ns - median_low(rank.wall_ns for rank in ranks.ranks if rank is not slowest)
        if not ns:
            return f"{none}has the longest window."
        why = "it has the longest window, {} beyond the median of the others"
    text = f"{_named(ranks.slowest)} is the slowest of {len(ranks.ranks)} ranks: "
    text += why.format(f"{format_ns(ns)} ({ns / max(1, slowest.wall_ns):.1%} of its window)")
    causes = [f"{excess.name} +{format_ns(excess.excess_ns)}" for excess in ranks.straggler[:_MOST_CAUSES]]
    if causes:
        text += f"; beyond the median of the others it spends {', '.join(causes)}"
    return text + "."


def _named(label: str) -> str:
    return f"Rank {label}" if label.isdecimal() else label
