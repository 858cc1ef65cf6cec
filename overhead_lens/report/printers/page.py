"""An outline as a page: one HTML file that holds everything, asks nothing of any network, and runs no script but its own.

What the page shows is text in elements, or JSON that the script sets as text; the policy in its head allows the script by its
hash and nothing else, so that no name from a trace can become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files

from overhead_lens.report.looks import letters_on
from overhead_lens.report.outline import Bars, Block, Card, Drawing, Notes, Outline, Picture, Table
from overhead_lens.report.page.model import Icicle, Lanes, Plot, Tiles
from overhead_lens.report.page.plot import lanes_svg, plot_svg
from overhead_lens.report.printers.html import bars_html, patterns, shown, table_html
from overhead_lens.report.text.blocks import cut
from overhead_lens.report.text.plain import plain
from overhead_lens.taxonomy.classifier import Classifier

_BELOW_TITLE = ("started", "version", "command", "python", "torch", "cpu", "gpu")
# What would end a script element, or a line of JavaScript, inside JSON.
_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_LONGEST_IN_ICICLE = 160
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
    if origin:
        rows = "".join(f"<dt>{shown(name)}</dt><dd>{shown(text)}</dd>\n" for name, text in origin)
        parts.append(details("How it was measured", f"<dl>\n{rows}</dl>\n", is_open=False))
    title = f"{outline.title}: {outline.figure}" if outline.figure else outline.title
    below = "".join(f'<p class="about">{shown(line)}</p>\n' for line in (*outline.about, *_origin(origin)))
    return document(title, outline.sentence, below, f"{patterns()}{''.join(parts)}", icicles)


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


def document(title: str, answer: str, below: str, body: str, icicles: Sequence[Icicle]) -> str:
    """The document around a body of HTML, whose elements of icicles draw ``icicles`` by number; ``below`` is HTML as well."""
    script = _asset("page.js")
    drawn = json.dumps(_drawn(icicles), separators=(",", ":")).translate(_IN_SCRIPT)
    name = shown(title)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{name} - Overhead Lens</title>\n<style>{_asset('page.css')}</style>\n</head>\n<body>",
            f'<header>\n<h1>{name}</h1>\n<p class="answer">{shown(answer)}</p>\n{below}</header>',
            f"<main>\n{body}</main>",
            f'<script type="application/json" id="icicles">{drawn}</script>',
            f"<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def _policy(script: str) -> str:
    """Nothing from anywhere; the script by its hash; styles and pictures of the page itself."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("overhead_lens.report.page").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _drawn(icicles: Sequence[Icicle]) -> dict[str, object]:
    """The trees of each icicle, with texts as places in a list, since the same names and rules stand at many frames."""
    texts: dict[str, int] = {}

    def place(text: str) -> int:
        return texts.setdefault(cut(plain(text), _LONGEST_IN_ICICLE), len(texts))

    def columns(tree: Tiles) -> dict[str, object]:
        tiles = tree.tiles
        return {
            "fields": tree.fields,
            "names": [place(tile.text) for tile in tiles],
            "parents": [tile.parent for tile in tiles],
            "sizes": [tile.size for tile in tiles],
            "inks": [place(tile.ink) for tile in tiles],
            "letters": [place(letters_on(tile.ink)) for tile in tiles],
            "values": [[place(text) for text in tile.values] for tile in tiles],
            "framework": [at for at, tile in enumerate(tiles) if tile.is_framework],
        }

    trees = [[columns(tree) for tree in (icicle.tree, icicle.callers) if tree is not None] for icicle in icicles]
    return {"trees": trees, "texts": list(texts)}


def details(heading: str, body: str, is_open: bool) -> str:
    """A section that folds."""
    opened = " open" if is_open else ""
    return f"<details{opened}>\n<summary><h2>{shown(heading)}</h2></summary>\n{body}</details>\n"


def icicle_html(icicle: Icicle, number: int) -> str:
    """A figure that the script fills when it comes into sight, with its search field and the description of a frame."""
    keys = "Arrow keys walk the frames, Enter zooms in, Escape zooms out."
    switches = _switch("callers", "Innermost frames on top") if icicle.callers else ""
    if any(tile.is_framework for tile in icicle.tree.tiles):
        switches += _switch("hide", "Hide the framework's Python")
    return (
        f'<figure class="tree" data-icicle="{number}">\n<div class="tools">\n'
        f'<div class="find"><label>Search frames <input type="search" autocomplete="off"></label> {switches}'
        f'<output aria-live="polite"></output> <button type="button" hidden>Zoom out</button></div>\n'
        f'<figcaption aria-live="polite">Click a frame to zoom and to see what claimed it. {keys}</figcaption>\n</div>\n'
        f'<div class="icicle" tabindex="0" role="group" aria-roledescription="icicle" '
        f'aria-label="{shown(icicle.alternative)} {keys}"></div>\n</figure>\n'
    )


def _switch(name: str, label: str) -> str:
    return f'<label><input type="checkbox" name="{name}"> {label}</label> '
