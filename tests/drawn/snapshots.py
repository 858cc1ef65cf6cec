"""Memory snapshots drawn for tests, as ``torch.cuda.memory._snapshot`` lays them out."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TRAIN = {"filename": "train.py", "line": 7, "name": "main"}


def entry(action: str, addr: int, size: int, time_us: int = 1, frames: Sequence[dict] = (), **more: Any) -> dict:
    return {
        "action": action, "addr": addr, "size": size, "stream": 0, "time_us": time_us, "compile_context": "N/A",
        "frames": list(frames), **more,
    }  # fmt: skip


def segment(total: int, device: int, *blocks: tuple[int, str]) -> dict:
    made = [
        {"address": 64 * at, "size": 512, "requested_size": size, "state": state, "frames": []}
        for at, (size, state) in enumerate(blocks)
    ]
    return {
        "device": device, "address": 0, "total_size": total, "allocated_size": 0, "active_size": 0, "stream": 0,
        "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": made,
    }  # fmt: skip


def snapshot(*traces: list[dict], segments: Sequence[dict] = ()) -> dict:
    return {"segments": list(segments), "device_traces": list(traces), "allocator_settings": {"expandable_segments": False},
            "external_annotations": []}  # fmt: skip


def pickled(folder: Path, value: Any, protocol: int = 4, name: str = "snapshot.pickle") -> Path:
    path = folder / name
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path
