"""Colors of slices in the Perfetto UI.

A slice's color is a hash of its correlation id where it has one, and of its name otherwise (``ui/src/components/colorizer.ts``;
versions 52 and 58 alike). These ids hash to the hues that the categories have in other pictures, so that a category has one color
on every track, whatever stands in a slice's name.
"""

from __future__ import annotations

SEEDS = {
    "python": "python 114",
    "guard": "guard 155",
    "dispatcher": "dispatcher 217",
    "allocation": "allocation 74",
    "kernel": "kernel 1743",
    "launch": "launch 1510",
    "wait": "wait 469",
    "compile": "compile 999",
    "unattributed": "unattributed 832",
    "queue": "queue 2543",
    "busy": "busy 211",
    "text": "text 67",
}
