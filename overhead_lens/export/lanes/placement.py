"""Trace events and category intervals in one frame, with the lane of each row."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overhead_lens.export.names import readable
from overhead_lens.readers.kineto.event import DEVICE_CATEGORIES

CATEGORIES_LANE = "Categories"
PYTHON_LANE = "Python"
OPERATORS_LANE = "Operators"
STREAM = "stream"
ANNOTATIONS = "annotations"
LANE_KINDS = (CATEGORIES_LANE, PYTHON_LANE, OPERATORS_LANE, STREAM, ANNOTATIONS)

# Spans on a stream that are not its work: they overlap its kernels and get a lane beside them.
ANNOTATION_CATEGORIES = ("gpu_user_annotation", "cuda_sync")

_COLUMNS = ["name", "cat", "pid", "tid", "kind", "start_ns", "dur_ns", "correlation", "sequence"]


def placed_rows(
    events: pd.DataFrame, categories: pd.DataFrame | None = None, *, separates_python: bool = True
) -> pd.DataFrame:
    """Every event and category interval, in file order; arguments as of ``event_lanes``.

    Returns:
        Columns ``name``, ``cat`` (as given); ``pid``, ``tid`` (str: process and thread, for a device row its device and
        stream); ``kind`` (str, one of ``LANE_KINDS``); ``start_ns``, ``dur_ns``, ``correlation``, ``sequence`` (int64, the
        last two -1 where absent).
    """
    parts = [_events(events, PYTHON_LANE if separates_python else OPERATORS_LANE)]
    if categories is not None:
        parts.append(_categories(categories))
    parts = [part for part in parts if len(part)] or parts[:1]
    rows: pd.DataFrame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    return rows


def _events(events: pd.DataFrame, python_lane: str) -> pd.DataFrame:
    category = events["cat"]
    on_stream, annotates = category.isin(DEVICE_CATEGORIES), category.isin(ANNOTATION_CATEGORIES)
    kind = np.select(
        [on_stream, annotates, category == "python_function"], [STREAM, ANNOTATIONS, python_lane], OPERATORS_LANE
    )
    of_device = on_stream | annotates
    placed = events.assign(
        kind=kind,
        pid=_number_or_label(events, "device", "pid", of_device),
        tid=_number_or_label(events, "stream", "tid", of_device).str.removeprefix("stream "),
        correlation=_link(events, "correlation"),
        sequence=_link(events, "sequence"),
    )
    rows: pd.DataFrame = placed[_COLUMNS].reset_index(drop=True)
    return rows


def _categories(categories: pd.DataFrame) -> pd.DataFrame:
    """Category intervals as rows."""
    placed = categories.assign(
        name=categories["category"],
        cat="host category",
        kind=CATEGORIES_LANE,
        pid=_labels(categories["pid"]),
        tid=_labels(categories["tid"]),
        correlation=-1,
        sequence=-1,
    )
    rows: pd.DataFrame = placed[_COLUMNS].reset_index(drop=True)
    return rows


def _number_or_label(events: pd.DataFrame, number: str, label: str, of_device: pd.Series[bool]) -> pd.Series[str]:
    """``label`` as text, replaced by the device's ``number`` where there is one."""
    labels = _labels(events[label])
    if number not in events.columns:
        return labels
    return labels.mask(of_device & (events[number] >= 0), events[number].astype(str))


def _labels(column: pd.Series) -> pd.Series[str]:
    """A process or thread as the file names it (a number, text, or nothing) as text."""
    codes, values = pd.factorize(column, use_na_sentinel=False)
    labelled: pd.Series[str] = pd.Series(
        np.array([_label(value) for value in values], dtype=object)[codes], index=column.index
    )
    return labelled


def _label(value: object) -> str:
    return readable(int(value) if isinstance(value, float) and value.is_integer() else value)


def _link(events: pd.DataFrame, column: str) -> pd.Series[int] | int:
    return events[column] if column in events.columns else -1
