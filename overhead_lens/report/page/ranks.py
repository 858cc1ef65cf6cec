"""The page of several traces: how the ranks compare, then the straggler's trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from overhead_lens.report.page.charts.bars import Bar, Stretch, bars_chart, bars_table, host_bar
from overhead_lens.report.page.model import Block, Page, Section, Table, Text
from overhead_lens.report.page.recorded.collectives import straggler_blocks
from overhead_lens.report.page.recorded.critical_path import over_ranks_sections
from overhead_lens.report.page.recorded.findings import finding_sections
from overhead_lens.report.page.recorded.launches import batch_sections
from overhead_lens.report.page.trace import trace_page, trace_sections
from overhead_lens.report.text import ranks as told
from overhead_lens.report.text.plain import plain
from overhead_lens.report.text.recorded.launches import batches_sentence
from overhead_lens.taxonomy.categories import HATCHES, INKS
from overhead_lens.taxonomy.classifier import Classifier
from overhead_lens.traces.model import TraceAnalysis, TraceFailure
from overhead_lens.traces.ranks import Job, RanksAnalysis, RankTime
from overhead_lens.units import format_ns

_MOST_RANKS = 64
_MOST_SPREADS = 20
_TRANSFER = "#aa3377"


def traces_page(job: Job, _classifier: Classifier) -> Page:
    """The page of one trace or of several."""
    analyses = [result for result in job.results if isinstance(result, TraceAnalysis)]
    failures = [result for result in job.results if isinstance(result, TraceFailure)]
    detailed = job.detailed
    if detailed is None:
        return Page(f"{len(failures)} traces", "None could be read.", list(_failures(failures)))
    if job.batches is not None:
        answer, name, compared = batches_sentence(job.batches), detailed.path, list(batch_sections(job.batches))
    elif job.ranks is not None:
        answer, name, compared = (
            told.sentence(job.ranks),
            f"rank {job.ranks.slowest}",
            list(_compared(job.ranks, analyses)),
        )
    else:
        page = trace_page(detailed, _classifier)
        return Page(page.title, page.answer, [*page.sections, *_failures(failures)], page.provenance)
    sections = [
        *compared,
        *_failures(failures),
        *(replace(section, heading=f"{section.heading} of {plain(name)}") for section in trace_sections(detailed)),
    ]
    provenance = [(f"trace {at}", analysis.path) for at, analysis in enumerate(analyses[:_MOST_RANKS], 1)]
    return Page(f"{len(analyses)} traces", answer, sections, provenance)


def _compared(ranks: RanksAnalysis, analyses: Sequence[TraceAnalysis]) -> Iterator[Section]:
    yield from finding_sections(ranks.findings)
    yield Section("Ranks", list(_ranks(ranks, analyses)))
    yield from over_ranks_sections(ranks.critical_path)


def _ranks(ranks: RanksAnalysis, analyses: Sequence[TraceAnalysis]) -> Iterator[Block]:
    shown = {rank.label for rank in sorted(ranks.ranks, key=lambda rank: rank.wait_ns)[:_MOST_RANKS]}
    rows = [rank for rank in ranks.ranks if rank.label in shown]
    by_path = {analysis.path: analysis for analysis in analyses}
    most_ns = max(rank.wall_ns for rank in rows)
    if hosts := [_host(rank, by_path[rank.path], ranks.slowest, most_ns) for rank in rows if by_path[rank.path].host]:
        described = f"The window of {len(hosts)} ranks by category of the busiest thread, to one scale."
        yield bars_chart(hosts, described)
        yield bars_table(hosts, "", "window")
    if ranks.by_collectives:
        longest_ns = max(rank.wait_ns + rank.transfer_ns for rank in rows)
        yield bars_chart(
            [_collectives(rank, ranks.slowest, longest_ns) for rank in rows],
            "Time of each rank in collectives; the rank that waits least is the straggler.",
        )
    heads, cells = told.rank_cells(ranks, _MOST_RANKS)
    yield Table(heads, cells, frozenset(range(1, len(heads))))
    heads, cells = told.spread_cells(ranks, _MOST_SPREADS)
    yield Table(heads, cells, frozenset({1, 2, 3}), "spread over the ranks, widest first")
    if ranks.stragglers is not None:
        yield from straggler_blocks(ranks.stragglers)
    more = len(ranks.ranks) - len(rows)
    left_out = [f"{more} ranks that wait longer are left out; --json has them."] if more else []
    if notes := [*ranks.notes, *left_out]:
        yield Text(notes)


def _host(rank: RankTime, analysis: TraceAnalysis, slowest: str, most_ns: int) -> Bar:
    return host_bar(_name(rank, slowest), format_ns(rank.wall_ns), analysis.host, most_ns)


def _collectives(rank: RankTime, slowest: str, longest_ns: int) -> Bar:
    stretches = [
        Stretch("transfer", _TRANSFER, "", rank.transfer_ns, f"transfer {format_ns(rank.transfer_ns)}"),
        Stretch(
            "waiting for others", INKS["wait"], HATCHES["wait"], rank.wait_ns, f"waiting {format_ns(rank.wait_ns)}"
        ),
    ]
    return Bar(_name(rank, slowest), f"waits {format_ns(rank.wait_ns)}", stretches, longest_ns)


def _name(rank: RankTime, slowest: str) -> str:
    return f"rank {rank.label}" + (" (slowest)" if rank.label == slowest else "")


def _failures(failures: Sequence[TraceFailure]) -> Iterator[Section]:
    if failures:
        rows = [(failure.path, failure.error) for failure in failures]
        yield Section("Traces that could not be read", [Table(("trace", "why"), rows)])
