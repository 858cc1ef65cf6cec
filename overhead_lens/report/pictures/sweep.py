"""The sweep as a picture: measured times with their intervals and the fitted lines, both axes logarithmic."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from overhead_lens.report.pictures.save import save
from overhead_lens.report.text.plain import literal
from overhead_lens.studies.sweep.analysis import DOES_NOT_FIT, Sweep

_SIZE_IN = (9.0, 6.0)
_STEPS = 200


def draw_sweep(sweep: Sweep, target: Path) -> None:
    """Write the picture, as ``save`` does."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_IN, layout="constrained")
    axes = figure.subplots()
    sizes = np.array(sweep.sizes, dtype=np.float64)
    along = np.geomspace(max(sizes.min(), 1.0), max(sizes.max(), 1.0), _STEPS)
    for at, variant in enumerate(sweep.variants):
        us = np.array([point.ns for point in variant.points]) / 1e3
        ends_us = np.array([point.ci95_ns for point in variant.points]) / 1e3
        spread = np.maximum(np.abs(ends_us - us[:, None]).T, 0.0)
        label = literal(variant.name) + (" (does not fit)" if variant.fit == DOES_NOT_FIT else "")
        axes.errorbar(sizes, us, yerr=spread, fmt="o", color=f"C{at}", markersize=4, capsize=2, label=label)
        axes.plot(
            along, (variant.line.overhead_ns + along * variant.line.element_ns) / 1e3, color=f"C{at}", linewidth=1
        )
    for crossing in sweep.crossings:
        if crossing.size is not None and along[0] <= crossing.size <= along[-1]:
            axes.axvline(crossing.size, color="#bab0ac", linewidth=0.5, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(literal(sweep.against))
    axes.set_ylabel("µs per call")
    axes.set_title(literal(f"{sweep.subject.name}: time = overhead + {sweep.against} / rate"), fontsize=10)
    axes.legend(fontsize=8)
    save(figure, target)
