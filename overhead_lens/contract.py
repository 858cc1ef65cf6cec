"""How a field of a result stands in its JSON document, by its annotation.

A frozen model is an object of a document: its fields in order are the keys, and its docstring is the object's in the schema. So a
field that is renamed, or moved, changes what users read; the schemas of ``docs/reference`` show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Rounded:
    """Annotation of a number, or several, rounded to that number of digits in a document; to whole numbers for None."""

    digits: int | None


Whole = Annotated[float, Rounded(0)]
Tenths = Annotated[float, Rounded(1)]
TenthsInterval = Annotated[tuple[float, float], Rounded(1)]
Thousandths = Annotated[float, Rounded(3)]
Ratio = Annotated[float, Rounded(4)]
ShareOfTime = Annotated[float, Rounded(5)]


def derive(model: object, **fields: object) -> None:
    """Set fields of a frozen model that follow from its others (``field(init=False)``), in its ``__post_init__``."""
    for name, value in fields.items():
        object.__setattr__(model, name, value)
