"""``overhead-lens open``: a capture or any trace in the Perfetto UI."""

from __future__ import annotations

import gzip
import os
import re
import sys
import tempfile
import webbrowser
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from overhead_lens.errors import MeasurementError, UsageError
from overhead_lens.terminal import arguments as given
from overhead_lens.terminal.command import argument, option, refuse
from overhead_lens.terminal.completion import complete_capture_or_trace
from overhead_lens.terminal.newest import newest_or

if TYPE_CHECKING:
    from overhead_lens.export.viewer.server import Document

_GZIP = b"\x1f\x8b"
_LARGEST_BYTES = 2_000_000_000
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*[\[{]")


Ui: TypeAlias = Literal["public", "bundled"]


def open_(
    context: typer.Context,
    target: Annotated[
        Path | None,
        argument(
            "CAPTURE|TRACE",
            "A capture directory or a trace file. Default: the newest capture in ./traces.",
            complete_capture_or_trace,
        ),
    ] = None,
    ui: Annotated[Ui, option("--ui UI")] = "public",
    browser: Annotated[bool, option("--browser/--no-browser")] = True,
    wait: Annotated[float, option("--wait SECONDS", callback=given.between(1, 1_000_000))] = 600.0,
    rules: given.Rules = None,
) -> None:
    """Show a capture or trace in the Perfetto UI. The data never leaves this machine."""
    from overhead_lens.export.viewer.server import serve

    target = newest_or(target)
    with tempfile.TemporaryDirectory(prefix="overhead-lens-") as folder:
        drawn = _drawn(target, Path(folder) / "trace.pftrace", rules)
        if drawn is None:
            refuse(context, f"with {target}, which is shown as it is", "rules")
        _check_size(drawn or target, target)
        title = f"{target.resolve().name}.pftrace" if target.is_dir() else target.resolve().name
        is_ours = drawn is not None or b"1. Budget of " in _beginning(target)
        offer = _offer(ui, drawn or target, title, is_ours=is_ours)
        if not serve(offer.documents, timeout_s=wait, on_ready=lambda base: _announce(offer, base, browser=browser)):
            raise MeasurementError(f"no browser fetched the trace within {wait:.0f} s")


def _check_size(trace: Path, target: Path) -> None:
    """Refuse what no browser hands over: one array holds less than 2 GiB."""
    size = trace.stat().st_size
    if size > _LARGEST_BYTES:
        raise UsageError(
            f"the trace of {target} has {size / 1e9:.1f} GB, and a browser takes 2 GB at most; Perfetto's "
            "trace_processor --httpd shows larger ones"
        )


@dataclass(frozen=True, slots=True)
class _Offer:
    """The served documents, the address to open (from the server's address), and what to do there."""

    documents: Mapping[str, Document]
    address: Callable[[str], str]
    word: str


def _offer(ui: Ui, trace: Path, title: str, *, is_ours: bool) -> _Offer:
    from overhead_lens.export.viewer.address import PUBLIC_UI, picture_address
    from overhead_lens.export.viewer.bundled import PAGE, bundled_documents
    from overhead_lens.export.viewer.public import launcher_documents

    if ui == "public":
        documents = launcher_documents(trace, title, picture_address(f"{PUBLIC_UI}/", is_ours=is_ours))
        return _Offer(documents, lambda base: base, "click the button there")
    name = re.sub(r"[^\w.-]+", "-", title, flags=re.ASCII)

    def address(base: str) -> str:
        # "testing" keeps the UI from waiting for changes of its developers.
        return picture_address(f"{base}{PAGE}?testing=1", f"{base}{name}", is_ours=is_ours)

    return _Offer(bundled_documents(trace, name), address, "it is served until its tab is closed")


def _announce(offer: _Offer, base: str, *, browser: bool) -> None:
    address = offer.address(base)
    started = browser and _start_browser(address)
    typer.echo(f"{address}\n{'opened in the browser' if started else 'open this address'}; {offer.word}; Ctrl-C ends")
    if not started and "SSH_CONNECTION" in os.environ:
        port = base.split("/")[2].rpartition(":")[2]
        typer.echo(f"from another machine, forward its port first: ssh -L {port}:127.0.0.1:{port} ...")


def _start_browser(address: str) -> bool:
    """Whether a browser was started; without a display there would be a text browser at best, on this very terminal."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        return webbrowser.open_new_tab(address)
    except (webbrowser.Error, OSError):
        return False


def _drawn(target: Path, picture: Path, rules: Path | None) -> Path | None:
    """The picture drawn of a directory or of an exported trace; None for a file that the UI reads as it is."""
    if os.path.isdir(target):  # noqa: PTH112  (Path.is_dir raises for a name that is too long)
        from overhead_lens.directories import export_directory
        from overhead_lens.taxonomy.classifier import default_classifier

        export_directory(target, picture, "perfetto", default_classifier(rules))
        return picture
    if not os.path.isfile(target):  # noqa: PTH113
        raise UsageError(f"no trace {target}")
    if not _JSON.match(_beginning(target)):
        return None
    from overhead_lens.export.perfetto.analysis import write_analysis_perfetto
    from overhead_lens.readers.kineto.read import read_trace
    from overhead_lens.taxonomy.classifier import default_classifier
    from overhead_lens.traces.pieces import analyze_over_time

    analyzed = analyze_over_time(read_trace(target), default_classifier(rules))
    if not len(analyzed.trace.events):
        raise UsageError(f"{target} holds no event")
    if not (analyzed.analysis.threads or analyzed.analysis.devices):
        return None
    write_analysis_perfetto(picture, analyzed)
    return picture


def _beginning(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a file, unpacked where it is compressed."""
    try:
        with path.open("rb") as file:
            start = file.read(size)
        if start.startswith(_GZIP):
            with gzip.open(path, "rb") as packed:
                start = packed.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not start:
        raise UsageError(f"{path} is empty")
    return start
