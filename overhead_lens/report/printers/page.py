"""An outline as a page: one HTML file that holds everything and asks nothing of any network."""

from __future__ import annotations

from collections.abc import Sequence

from overhead_lens.report.outline import Bars, Block, Card, Drawing, Notes, Outline, Picture, Table
from overhead_lens.report.page.lanes import lanes_svg
from overhead_lens.report.page.model import Icicle, Lanes, Plot
from overhead_lens.report.page.plot import plot_svg
from overhead_lens.report.page.write import details, document, icicle_html, provenance
from overhead_lens.report.printers.html import bars_html, patterns, shown, table_html
from overhead_lens.taxonomy.classifier import Classifier

_BELOW_TITLE = ("started", "version", "command", "python", "torch", "cpu", "gpu")
_NAMED = {"python": "Python", "torch": "torch", "version": "Overhead Lens"}


def page_of(outline: Outline, classifier: Classifier) -> str:
    """The document; pictures are drawn by the rules of a classifier."""
    icicles: list[Icicle] = []
    parts = []
    for section in outline.sections:
        inside = "".join(_block(block, classifier, icicles, outline.sentence) for block in section.blocks)
        parts.append(details(section.heading, inside, section.is_open))
    if outline.warnings:
        parts.append(details("Warnings", _paragraphs(outline.warnings), is_open=True))
    origin = outline.origin()
    title = f"{outline.title}: {outline.figure}" if outline.figure else outline.title
    below = "".join(f'<p class="about">{shown(line)}</p>\n' for line in (*outline.about, *_origin(origin)))
    body = f"{patterns()}{''.join(parts)}{provenance(origin)}"
    return document(title, outline.sentence, below, body, icicles)


def _origin(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """When, by what and where it was measured, in a line; of a comparison in one for each side."""
    known = dict(pairs)
    sides = dict.fromkeys(name.partition(" ")[0] for name in known if name.partition(" ")[2] in _BELOW_TITLE)
    lines = []
    for side in ("", *sides):
        names = {name: f"{side} {name}".strip() for name in _BELOW_TITLE}
        facts = [f"{_NAMED.get(name, '')} {known[full]}".strip() for name, full in names.items() if known.get(full)]
        lines += [f"{side}: {' · '.join(facts)}".removeprefix(": ")] if facts else []
    return lines


def _block(block: Block, classifier: Classifier, icicles: list[Icicle], sentence: str) -> str:
    if isinstance(block, Table):
        return _table(block.shown(whole=True))
    if isinstance(block, Bars):
        bars = "".join(bars_html(block, _attributes, hatched=True))
        return f'<figure class="bars" role="group" aria-label="{shown(block.alternative)}">\n{bars}</figure>\n'
    if isinstance(block, Notes):
        return _paragraphs(block.lines)
    if isinstance(block, Card):
        return _card(block, sentence)
    assert isinstance(block, Drawing)
    return "".join(_picture(picture, icicles) for picture in block.draw(classifier))


def _picture(picture: Picture, icicles: list[Icicle]) -> str:
    """A picture; an icicle is added to ``icicles``, from which the page's script draws it."""
    if isinstance(picture, Icicle):
        icicles.append(picture)
        return icicle_html(picture, len(icicles) - 1)
    if isinstance(picture, Plot):
        return plot_svg(picture)
    if isinstance(picture, Lanes):
        return lanes_svg(picture)
    return _table(picture.shown(whole=True)) if isinstance(picture, Table) else _paragraphs(picture.lines)


def _card(card: Card, sentence: str) -> str:
    """A card; without its title if the sentence below the page's title says it."""
    evidence = _paragraphs([line for line in card.evidence if line])
    remedy = f"<em>try</em> {shown(card.remedy)}"
    title = f"<strong>{shown(card.title)}</strong>"
    if card.title[1:].removesuffix(".") in sentence:
        head, body = remedy, evidence
    else:
        head, body = title, f"{evidence}<p>{remedy}</p>\n"
    return f'<details class="card" open>\n<summary>{head}</summary>\n{body}</details>\n'


def _table(table: Table) -> str:
    """A table; what is wider than the page scrolls by itself, with the keyboard as well."""
    caption = f"<p>{shown(table.caption)}</p>\n" if table.caption else ""
    label = shown(table.caption or "table")
    element = table_html(table, _attributes)
    return f'{caption}<div class="table" tabindex="0" role="group" aria-label="{label}">{element}</div>\n'


def _paragraphs(lines: Sequence[str]) -> str:
    return "".join(f"<p>{shown(line)}</p>\n" for line in lines)


def _attributes(roles: str) -> str:
    """Classes; a table's own elements need none."""
    first, *others = roles.split()
    scope = ' scope="col"' if first == "th" else ""
    classes = others if first in ("table", "tr", "th", "td") else [first, *others]
    return scope + (f' class="{" ".join(classes)}"' if classes else "")
