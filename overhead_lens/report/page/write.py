"""The HTML of a page: one file that holds everything, asks nothing of any network, and runs no script but its own.

What the page shows is text in elements, or JSON that Plotly draws; the policy in its head allows the two scripts by their hashes
and nothing else, so that no name from a trace can become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files

from overhead_lens.report.page.model import Chart
from overhead_lens.report.printers.html import shown

# What would end a script element, or a line of JavaScript, inside JSON.
_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def document(title: str, answer: str, below: str, body: str, charts: Sequence[Chart]) -> str:
    """The document around a body of HTML.

    Args:
        title: What was measured.
        answer: The sentence below it.
        below: HTML below that.
        body: HTML of the sections.
        charts: What its elements of charts draw, by number.
    """
    own, library = _asset("page.js"), _plotly()
    drawn = json.dumps([_drawn(chart) for chart in charts], separators=(",", ":")).translate(_IN_SCRIPT)
    name = shown(title)
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy((library, own))}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{name} - Overhead Lens</title>\n<style>{_asset('page.css')}</style>\n</head>\n<body>",
            f'<header>\n<h1>{name}</h1>\n<p class="answer">{shown(answer)}</p>\n{below}</header>',
            f"<main>\n{body}</main>",
            f'<script type="application/json" id="charts">{drawn}</script>',
            f"<script>{library}</script>\n<script>{own}</script>\n</body>\n</html>\n",
        )
    )


def _policy(scripts: Sequence[str]) -> str:
    """Nothing from anywhere; the scripts by their hashes; styles and pictures of the page itself."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return files("overhead_lens.report.page").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    """The library's script, which may not end the element that holds it."""
    text = files("plotly").joinpath("package_data").joinpath("plotly.min.js").read_text(encoding="utf-8")
    return text.replace("</script", "<\\/script")


def _drawn(chart: Chart) -> dict[str, object]:
    return {"data": chart.figure["data"], "layout": chart.figure["layout"], "height": chart.height_px}


def details(heading: str, body: str, is_open: bool) -> str:
    """A section that folds."""
    opened = " open" if is_open else ""
    return f"<details{opened}>\n<summary><h2>{shown(heading)}</h2></summary>\n{body}</details>\n"


def chart_html(chart: Chart, number: int) -> str:
    """A figure that the script fills when it comes into sight; an icicle with its search field and the description of a frame."""
    place = f'style="height:{chart.height_px}px" data-chart="{number}"'
    described = shown(chart.alternative)
    if not chart.tree:
        return f'<figure><div class="chart" {place} role="img" aria-label="{described}"></div></figure>\n'
    keys = "Arrow keys walk the frames, Enter zooms in, Escape zooms out."
    return (
        f'<figure class="tree">\n<div class="find"><label>Search frames <input type="search" autocomplete="off"></label> '
        f'<output aria-live="polite"></output> <button type="button" hidden>Zoom out</button></div>\n'
        f'<div class="chart" {place} tabindex="0" role="group" aria-roledescription="icicle" '
        f'aria-label="{described} {keys}"></div>\n'
        f'<figcaption aria-live="polite">Click a frame to zoom and to see what claimed it. {keys}</figcaption>\n</figure>\n'
    )


def provenance(pairs: Sequence[tuple[str, str]]) -> str:
    """The result's origin, folded."""
    if not pairs:
        return ""
    rows = "".join(f"<dt>{shown(name)}</dt><dd>{shown(text)}</dd>\n" for name, text in pairs)
    return f"<details>\n<summary><h2>How it was measured</h2></summary>\n<dl>\n{rows}</dl>\n</details>\n"
