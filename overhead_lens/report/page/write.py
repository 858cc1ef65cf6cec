"""The HTML of a page: one file that holds everything, asks nothing of any network, and runs no script but its own.

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
from overhead_lens.report.page.model import Icicle, Tiles
from overhead_lens.report.printers.html import shown
from overhead_lens.report.text.blocks import cut
from overhead_lens.report.text.plain import plain

# What would end a script element, or a line of JavaScript, inside JSON.
_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_LONGEST_IN_ICICLE = 160


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


def provenance(pairs: Sequence[tuple[str, str]]) -> str:
    """The result's origin, folded."""
    if not pairs:
        return ""
    rows = "".join(f"<dt>{shown(name)}</dt><dd>{shown(text)}</dd>\n" for name, text in pairs)
    return f"<details>\n<summary><h2>How it was measured</h2></summary>\n<dl>\n{rows}</dl>\n</details>\n"
