"""The budget per module as a table of queries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from overhead_lens.export.names import readable
from overhead_lens.taxonomy.categories import HOST_CATEGORIES
from overhead_lens.traces.modules.model import ModuleBudgets, ModuleTime

OUTSIDE = "(outside any module)"
UNLINKED = "(no launch in the trace)"

_WHOLE: Any = pa.int64()
_SCHEMA = pa.schema(
    [
        *((name, _WHOLE) for name in ("node", "parent")),
        *((name, pa.string()) for name in ("path", "name", "class")),
        *((name, _WHOLE) for name in ("number", "depth", "calls", "again")),
        *((f"{category}_ns", _WHOLE) for category in HOST_CATEGORIES),
        *((name, _WHOLE) for name in ("host_ns", "host_backward_ns", "host_total_ns")),
        *((name, _WHOLE) for name in ("others_ns", "others_backward_ns", "others_total_ns")),
        *((name, _WHOLE) for name in ("device_ns", "device_forward_ns", "device_backward_ns", "communication_ns")),
        *((name, _WHOLE) for name in ("device_events", "device_total_ns")),
    ]
)


def module_table(modules: ModuleBudgets | None) -> pa.Table:
    """A row for each module, one for what is outside, one for what has no launch; none without modules."""
    if modules is None:
        return _SCHEMA.empty_table()
    rows = [
        {
            "node": place,
            "parent": node.parent,
            "path": readable(modules.path(place)),
            "name": readable(node.name),
            "class": readable(node.class_name),
            "number": node.number,
            "depth": node.depth,
            "calls": node.calls,
            "again": node.again,
            **_own(node.own),
            **_total(node.total),
        }
        for place, node in enumerate(modules.nodes)
    ]
    rows.append({"path": OUTSIDE, "name": OUTSIDE, **_own(modules.outside), **_total(modules.outside)})
    unlinked = {"device_ns": modules.unlinked_ns, "device_events": modules.unlinked_events}
    rows.append({"path": UNLINKED, "name": UNLINKED, **unlinked, "device_total_ns": modules.unlinked_ns})
    return pa.Table.from_pylist(rows, _SCHEMA)


def _own(time: ModuleTime) -> dict[str, Any]:
    names = (
        "host_ns", "host_backward_ns", "others_ns", "others_backward_ns",
        "device_ns", "device_forward_ns", "device_backward_ns", "communication_ns", "device_events",
    )  # fmt: skip
    categories = {f"{category}_ns": time.host.get(category, 0) for category in HOST_CATEGORIES}
    return {**categories, **{name: getattr(time, name) for name in names}}


def _total(time: ModuleTime) -> dict[str, Any]:
    return {
        "host_total_ns": time.host_ns,
        "others_total_ns": time.others_ns,
        "device_total_ns": time.device_ns,
    }
